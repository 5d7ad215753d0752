"""Tests of glossary files: what they mean, and that their mistakes are named by line."""

import logging
import os
from argparse import ArgumentParser

import pytest

from pipeline.apps.options import add_model_arguments, configured
from pipeline.errors import ConfigError
from pipeline.glossary.current import GlossaryFile
from pipeline.glossary.files import MOST_BYTES, load_glossary, parse_glossary
from pipeline.glossary.table import DELIMITERS_OF, rows
from pipeline.glossary.terms import Glossary, Term

TSV = """\
source:en\ttarget:zh\tvariants\ttarget_variants\tcase
# Names
Kubernetes\t=\tK8s|kube

load  balancer\t负载均衡器\t\t负载均衡
R\tR语言\t\t\texact
"""
TERMS = (
    Term("Kubernetes", None, ("K8s", "kube")),
    Term("load balancer", "负载均衡器", (), ("负载均衡",)),
    Term("R", "R语言", exact_case=True),
)


@pytest.mark.parametrize("header", ["target:zh\tsource:en", "target:zh\tcase\tsource:en"])
def test_the_first_line_may_name_the_columns_in_any_order(header):
    cells = {"source:en": "Go", "target:zh": "Go语言", "case": "exact"}
    row = "\t".join(cells[name] for name in header.split("\t"))
    (term,) = (glossary := parse_glossary(f"{header}\n{row}\n", "g")).terms
    assert glossary.languages == ("en", "zh")
    assert term == Term("Go", "Go语言", exact_case="case" in header)


def test_a_glossary_works_in_both_directions():
    glossary = parse_glossary(TSV, "g")
    assert glossary == Glossary(TERMS, ("en", "zh"))
    assert glossary.between("en", "zh-TW") == glossary
    assert glossary.between("zh", "en").terms == (
        TERMS[0],
        Term("负载均衡器", "load balancer", ("负载均衡",), ("load balancers",)),
        Term("R语言", "R", exact_case=True),
    )
    assert glossary.between("en", "de").terms == glossary.between("fr", "de").terms == TERMS[:1]
    assert parse_glossary("Acme\tAkme", "g").between("fr", "de").terms == (Term("Acme", "Akme"),)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".tsv", 'source:en\ttarget:zh\n"Acme, ""Ltd"""\t"艾克米\n公司"\ncat\t小猫\n'),
        (".csv", 'English,Chinese\n"Acme, ""Ltd""",艾克米 公司\ncat,小猫\n'),
        (".csv", '"English";"Chinese"\r\n"Acme, ""Ltd""";"艾克米 公司"\r\ncat;小猫\r\n'),
        (".csv", 'sep=;\nEN;ZH\n"Acme, ""Ltd""";艾克米 公司\ncat;小猫\n'),
        (".csv", 'EN\tzh-CN\n"Acme, ""Ltd"""\t艾克米 公司\ncat\t小猫\n'),
        ("", 'Source (English),Target (Simplified Chinese)\n"Acme, ""Ltd""",艾克米 公司\ncat,小猫\n'),
        ("", 'SOURCE: en;Target: ZHO\nAcme, "Ltd";艾克米 公司\ncat;小猫\n'),
        ("", 'english\tCHINESE\tCase\t\n\t\t\t\n# Names\nAcme, "Ltd"\t艾克米 公司\t\n\ncat\t小猫\t\t\t\n'),
        (".txt", ',English,,Chinese,,\n,"Acme, ""Ltd""",,艾克米 公司,,\n,,,,,\n,cat,,小猫,,\n'),
        (".csv", 'Chinese,English\n小猫,cat\n艾克米 公司,"Acme, ""Ltd"""\n'),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_table_is_read_as_spreadsheets_write_it(suffix, text, encoding, tmp_path):
    path = tmp_path / f"terms{suffix}"
    path.write_bytes(text.encode(encoding))
    glossary = load_glossary(path)
    assert glossary.languages in (("en", "zh"), ("en", "zh-CN"), ("zh", "en"))
    assert [(term.source, term.target) for term in sorted(glossary.between("en", "zh").terms, key=str)] == [
        ('Acme, "Ltd"', "艾克米 公司"),
        ("cat", "小猫"),
    ]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Source,Target\ncat,猫\n", [("cat", "猫")]),
        ("Source Term;Translation;Variants\ncat;猫;kit|kitty\n", [("cat", "猫")]),
        ("target,source,Target Variants\n猫,cat,\n", [("cat", "猫")]),
        ("cat,猫\ndog,狗\n", [("cat", "猫"), ("dog", "狗")]),
        ("Acme, Inc.;艾克米\ncat;猫\n", [("Acme, Inc.", "艾克米")]),
        ("Acme, Inc.;艾克米\na, b;甲\n", [("Acme, Inc.", "艾克米"), ("a, b", "甲")]),
        ("term\t期限\nsource\t来源", []),
        ("Acme, Inc.\t艾克米\na; b\t甲；乙", [("Acme, Inc.", "艾克米"), ("a; b", "甲；乙")]),
        ('12" disk\t软盘\n', [('12" disk', "软盘")]),
        ("\ufeffcat\t猫", [("cat", "猫")]),
        ("car\tvan\nsun\tcat", [("car", "van"), ("sun", "cat")]),
    ],
)
def test_a_table_may_have_no_languages_or_no_head(text, terms):
    glossary = parse_glossary(text, "g")
    assert glossary.languages is None
    assert [(term.source, term.target) for term in glossary.terms][: len(terms)] == terms


@pytest.mark.parametrize(("head", "said"), [("IT,TI", True), ("ZH,EN", False), ("Source,Target", False)])
def test_a_glossary_for_other_languages_is_announced(head, said, tmp_path, capsys):
    path = tmp_path / "terms.csv"
    path.write_text(f"{head}\nacme,akme\n")
    parser = ArgumentParser()
    add_model_arguments(parser)
    configured(parser.parse_args(["--config", "demo-zh", "--glossary", str(path)]))
    assert capsys.readouterr().err == said * (
        "glossary: it is for it and ti; in this run, only the terms that keep their spelling are used\n"
    )


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("English,Chinese,French\ncat,猫,chat\n", 'line 1: unknown column "French"'),
        ("English,Chinese,Notes\ncat,猫,an animal\n", 'line 1: unknown column "Notes"; allowed are source'),
        ("English,English\ncat,cat\n", "line 1: the languages are en and en"),
        ("Source (Klingonish),Target\ncat,猫\n", "line 1: 'Klingonish' is not a language code"),
        ("English,Chinese\n\ncat,猫,,x\n", "line 3: 4 columns; expected source, target"),
        ("English,,Chinese\ncat,x,猫\n", 'line 2: "x" is in a column without a name'),
        ("English,Chinese\ncat\n", "line 2: no translation; write it in the next column"),
        ('English,Chinese\n"two\nlines",双行\n"cat" x,猫\ndog,\n', "line 4: a quotation mark is not closed, or text"),
        ('English,Chinese\n"two\nlines",双行\n"cat" x,猫\ndog,\n', 'line 5: "dog" has an empty translation'),
        ('English,Chinese\ncat,猫\n"dog,狗\ncow,牛\n', "line 3: a quotation mark is not closed"),
        ("cat\t猫\ndog\t狗\nCat\t貓\n", 'line 3: "Cat" is translated as "貓" and, in line 1, as "猫"'),
        ("cat\t猫\tkitty\nkitty\t小猫", 'line 2: "kitty" is translated as "小猫" and, in line 1, as "猫"'),
        ("cat\t \n", 'line 1: "cat" has an empty translation'),
        ("cat\n", "line 1: no translation; write it in the next column"),
        ("a\t甲\n", 'line 1: "a" is one letter'),
        ("中\tmiddle\n", 'line 1: "中" is one letter'),
        ("中\tmiddle\t\t\texact\n", 'line 1: "中" is one letter'),
        ("\t猫\n", "line 1: an empty term"),
        ("...\t猫\n", 'line 1: "..." has no letters'),
        ("cat\t猫\tkit|\n", "line 1: an empty term"),
        ("cat\t猫\t\t\tupper\n", 'line 1: the case rule is "upper"; it must be exact'),
        ("cat\t猫\t\t\t\tx\n", "line 1: 6 columns"),
        ("source:en\ttarget\ncat\t猫\n", "line 1: '' is not a language code"),
        ("ca\u202et\t猫\n", r'line 1: "ca\u202et" has control or invisible characters'),
        (f"{'cat' * 40}\t猫\n", "has 120 characters; a term has 100 at most"),
        ("a" + "\u0301\u0323" * 32_000 + "\t猫\n", "has 64001 characters; a term has 100 at most"),
        (f"{'(' * 32_000}\t{')' * 32_000}\n", "has 32000 characters; a term has 100 at most"),
        (f"source{' ' * 60_000}x\ttarget\n", "has 60007 characters; a term has 100 at most"),
        (f"source\ttarget\t{'x' * 60_000}\n", 'unknown column "' + "x" * 100 + '"; allowed'),
    ],
)
def test_mistakes_are_named_by_line(text, named):
    with pytest.raises(ConfigError) as error:
        parse_glossary(text, "terms.csv")
    assert str(error.value).startswith("the glossary terms.csv has mistakes: ")
    assert named in str(error.value)
    assert len(str(error.value)) < 300


def test_all_mistakes_are_named_at_once():
    with pytest.raises(ConfigError) as error:
        parse_glossary("a\t甲\nb\t\nCat\t猫\ncat\t狗\n" + "x\n" * 30, "g")
    message = str(error.value)
    assert all(f"line {number}:" in message for number in (1, 2, 4, 5))
    assert message.endswith("and 13 more")


@pytest.mark.parametrize(("mistakes", "more"), [(20, ""), (21, "and 1 more")])
def test_twenty_mistakes_are_named(mistakes, more):
    with pytest.raises(ConfigError) as error:
        parse_glossary("x\n" * mistakes, "g")
    message = str(error.value)
    assert message.count("no translation") == 20
    assert message.endswith(more or "keep the spelling")


def test_a_term_given_twice_is_kept_once():
    assert parse_glossary("cat\t猫\nCat\t猫\n", "g").terms == (Term("cat", "猫"),)
    (term,) = parse_glossary("cat\t猫\tkit|cat|kit\t喵|喵\n", "g").terms
    assert (term.variants, term.target_variants) == (("kit",), ("喵",))
    (kept,) = parse_glossary("cat\t=\t\tKater\n", "g").terms
    assert (kept.targets, kept.target) == (("cat", "Kater"), None)


def test_limits_are_what_is_allowed():
    assert parse_glossary(f"{'c' * 100}\t猫\n", "g").terms
    assert len(parse_glossary("cat\t猫\ndog\t狗\n", "g", most_terms=2).terms) == 2


def test_terms_with_exact_case_may_differ_in_case_alone():
    terms = parse_glossary("IT\t信息技术\t\t\texact\nit\t它\t\t\texact\n", "g").terms
    assert [term.target for term in terms] == ["信息技术", "它"]


def test_marks_of_regular_expressions_are_literal():
    glossary = parse_glossary("a.*b\t=\nC++ (17)\t=\n[x]\\d\t=\n", "g")
    text = r"aXXb and a.*b, C++ (17), [x]\d"
    assert [text[match.start : match.end] for match in glossary.found_in(text)] == ["a.*b", "C++ (17)", r"[x]\d"]


def test_five_hundred_terms_are_accepted():
    assert len(parse_glossary("".join(f"term{n}\t词{n}\n" for n in range(500)), "g").terms) == 500
    with pytest.raises(ConfigError, match="6000 terms; 5000 are allowed"):
        parse_glossary("".join(f"term{n}\t词{n}\n" for n in range(6000)), "g")


def test_files_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "terms.tsv"
    with pytest.raises(ConfigError, match="cannot read the glossary .*No such file"):
        load_glossary(path)
    path.write_bytes(b"cat\t=\nd\xff\t=\n")
    with pytest.raises(ConfigError, match="is not UTF-8: line 2"):
        load_glossary(path)
    with pytest.raises(ConfigError, match=r"x\.TOML is TOML; give a table with a term a row instead, as TSV or CSV"):
        load_glossary(tmp_path / "x.TOML")
    path.write_bytes(b"x" * (MOST_BYTES + 1))
    with pytest.raises(ConfigError, match="more than 1 MiB"):
        load_glossary(path)
    path.write_bytes("\ufeffcat\t猫\r\n".encode())
    assert load_glossary(path).terms == (Term("cat", "猫"),)


def test_a_changed_file_is_read_again_and_a_broken_one_keeps_the_terms(tmp_path, caplog):
    def write(text: str) -> None:
        new = tmp_path / "new"
        new.write_text(text, "utf-8")
        os.replace(new, path)  # another inode, as editors do, so that a coarse clock does not matter

    path = tmp_path / "terms.tsv"
    path.write_text("cat\t猫\n", "utf-8")
    current = GlossaryFile(path)
    checked: list[Glossary] = []
    current.check_with(checked.append)
    assert current() is current()
    write("dog\t狗\n")
    assert current().terms == (Term("dog", "狗"),)
    with caplog.at_level(logging.WARNING):
        write("cow\t\n")
        for _ in range(3):
            assert current().terms == (Term("dog", "狗"),)
        path.unlink()
        assert current().terms == (Term("dog", "狗"),)
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == 2
    assert "line 1" in messages[0]
    assert messages[0].endswith("the terms read before stay in use")
    write("cow\t牛\n")
    assert current().terms == (Term("cow", "牛"),)
    assert [glossary.terms for glossary in checked] == [
        (Term("cat", "猫"),),
        (Term("dog", "狗"),),
        (Term("cow", "牛"),),
    ]


def test_a_tab_in_a_cell_of_a_comma_separated_file_divides_nothing():
    assert rows("a\tb,c\nd,e\n", DELIMITERS_OF[".csv"]) == [(1, ["a\tb", "c"]), (2, ["d", "e"])]


def test_a_row_that_is_not_whole_does_not_change_how_the_others_are_divided():
    assert rows("cat;猫\ndog\n") == [(1, ["cat", "猫"]), (2, ["dog"])]


def test_a_comment_has_a_blank_after_its_sign_or_nothing():
    assert rows("# cat\t猫\n#\n#1 cat\t第一\n") == [(3, ["#1 cat", "第一"])]
