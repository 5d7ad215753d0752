"""Sentence ends in the languages of the catalogue.

A bar marks each position where a text has to be split; there must be no other split.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.nmt.routing import all_pairs
from pipeline.sentences import boundaries, splitting
from pipeline.sentences.splitting import split_sentences

PIECES = [
    "A",
    "b.",
    "Dr.",
    "'",
    '"',
    "“",
    "”",
    "„",
    "「",
    "」",
    "『",
    "』",
    "。",
    "？",
    "…",
    "...",
    ")",
    "(",
    "2.",
    "etc.",
    "né",
    "-",
    " ",
    "\n",
    "\r",
]
SOURCES = sorted({pair.source for pair in all_pairs()})

MARKED = {
    "en": """
        Mr. Smith and Mrs. Jones met Dr. Brown. |They talked.
        We use ASP.NET here. |See vol. 2.
        Open main.py and README.TXT. |Then run Node.js v2.0.1.
        Console.WriteLine is slow. |See www.Example.COM for more.
        Write to Bob.Smith@Example.COM today. |He answers.
        It is No. 5 on the list. |No. |I won't.
        The U.S. Army is here. |He lives in the U.S. |They came.
        We left at 10:30 a.m. on Monday. |It was 5 p.m. |We were late.
        J. R. R. Tolkien wrote it. |J.R.R. Tolkien and George W. Bush read it.
        He has a Ph.D. in physics. |St. John's is near Mt. Everest.
        "No." he said. |"Why?" she asked. |Then he left.
        “No.” said the man. |“Why?” Anna asked. |“Because.”
        He said, "Go." |She said, "No." |They stayed.
        "Really?" |"Yes." |"I see."
        Bring apples, pears, etc. |We leave at noon.
        Fruits, e.g. apples, i.e. food. |They cost 3.5 dollars vs. 4.
        Smith et al. found it on p. 5, in Fig. 3. |It matters.
        Sen. Warren met Gen. Lee, Rep. Ryan and Prof. Hill.
        Apple Inc. Chief Tim Cook spoke. |He works at Apple Inc. |He is happy.
        Take plan B. |Then wait. |Vitamin C. |Oranges have it.
        Give it to me. |Then we leave. |It was May. |You're ill. |Call me.
        We're early. |It is 8 a.m. |Tom waits until 9 a.m. Monday.
        It was ASP.NET, e.g. Visual Basic. |Good.
        (He left.) |She stayed (until ten).
        Wait... |What? |Well... maybe not.
        i think so. |yes. |maybe. |it was good.
        Hello there.|This has no space.|Nor this.
        Is it true? |Yes! |Good.
        It costs 12,500.50 dollars. |That is 3,000 more.
        In 2010. |Then in 2011.
        1. Open the file. |2. Close it.
    """,
    "de": """
        Die 2. Bundesliga beginnt. |Der 1. FC Köln spielt.
        Am 3. Oktober ist frei. |Am 3.10. auch.
        Das war 2010. |Danach kam nichts mehr.
        Er kam am 5. |Dann ging er.
        Im 19. Jahrhundert und im 2. Weltkrieg war das so.
        Ich bin 30. |Peter ist 25.
        Das ist z. B. Wasser, d. h. nichts. |Z.B. Anna.
        Nr. 5 lebt. |Auf S. 23 und in Bd. 2 steht mehr.
        Herr Dr. Müller kommt. |Frau Prof. Dr. med. Schmidt auch.
        Hl. Geist und St. Pauli.
        „Komm.“ sagte er. |Er ging.
        „Warum?“, fragte sie. |„Darum!“ |Sie schwieg.
        »Nein.« sagte Anna. |»Doch.«
        Er sagte: „Geh.“ |Dann ging er.
        Ludwig XIV. regierte lange. |Karl der V. war Kaiser.
        Äpfel, Birnen usw. |Danach gingen wir.
        Die Müller GmbH & Co. KG ist hier. |Das ist gut.
        Es kostet 5.300,25 Euro. |Um 10.30 Uhr ist Schluss.
        Das ist J. S. Bach. |Er ist tot.
        Max Müller wohnt in der Goethestr. 5. |Ja.
        Wir nutzen ASP.NET und VB.NET. |Das geht.
        Das ist Max. |Er ist da.
        Ja. |Nein. |Vielleicht.
        Ca. Hundert Leute kamen. |Dann war Schluss.
        Sie mag mich. |Ich mag sie. |Das ist gute Art. |Na.
    """,
    "fr": """
        M. Dupont est là. |Le Dr. Martin arrive.
        MM. Petit et Mme. Durand, Mlle. Anne et Mgr. Dupuis sont là.
        St. Jean et Ste. Anne. |Oui.
        Voir p. 5, art. 3, chap. 2 et fig. 4. |Merci.
        L'art. 3 du code. |Le vol. II.
        Il est né au IIe s. av. J.-C. dans le Sud. |Elle aussi.
        C'est en 50 av. J.-C. |Il était jeune.
        « Non. » dit-il. |Il part.
        « Non. » |Il part.
        « Pourquoi ? » demanda Marie. |« Parce que. »
        "Viens !" cria-t-elle. |Il vint.
        Il dit : « Non. » |Elle part.
        Des pommes, des poires, etc. |Ensuite on part.
        Par ex. Paul, p. ex. Anne. |Cf. Paul.
        J. Chirac et A. de Gaulle. |Ils sont morts.
        C'est le no. 5. |C'est bon.
        C'est le plan B. |Il marche.
        La société X S.A. est à Paris. |Elle est grande.
        Il a 3,5 millions. |Il est 10h30.
        Nous utilisons ASP.NET et Node.js. |C'est bien.
        C'est à moi. |À toi aussi. |Été comme hiver.
        Quoi ? |Non ! |D'accord.
        Bonjour. |comment ça va ?
        Attends... peut-être. |Bon.
    """,
    "es": """
        La Sra. López llegó. |El Sr. Pérez no.
        El Dr. García y la Dra. Ruiz. |El prof. Gil.
        P. ej. Esto. |Por ej. Juan, p. ej. Ana.
        En la pág. 5, núm. 3, art. 2 y cap. IV. |Eso.
        EE. UU. es grande. |Vive en EE. UU. |Ella no.
        Los EE.UU. Unidos. |Sí.
        D. Juan y Dña. Ana. |Sto. Domingo y Sta. Cruz.
        La Avda. Colón y la Av. Brasil. |Allí.
        «No.» dijo él. |Se fue.
        —No. —dijo él. |Se fue.
        "¿Por qué?" preguntó Ana. |"Porque sí."
        ¿Qué? |¡No! |Vale.
        Dijo: «No.» |Ella se fue.
        Manzanas, peras, etc. |Luego nos fuimos.
        J. L. Borges y F. García Lorca. |Poetas.
        La empresa Pérez S.A. es grande. |Es de aquí.
        A las 10:30 a. m. salimos. |A las 5 p. m. |Luego no.
        Cuesta 1.250,50 euros. |Son 3.5 más.
        En el siglo V a. C. nació. |Murió en el 40 d. C. |Él no.
        Usamos ASP.NET y main.py. |Bien.
        Es el plan B. |Luego veremos.
        ¿Y Ud. cómo está? |Bien.
        Dije que no. |Cinco personas vinieron.
        Espera... quizá no. |Bueno.
        Está bien. |Luego hablamos. |Son para nos. |Ya.
    """,
    "it": """
        Il Sig. Rossi è qui. |La dott.ssa Bianchi no.
        La Sig.ra Verdi e il Dott. Neri. |L'ing. Gialli e l'avv. Bruni.
        La Fiat S.p.A. è a Torino. |La Rossi S.r.l. di Roma. |È piccola.
        Prof. Verdi arriva. |La Prof.ssa Blu no.
        S. Francesco e S. Maria. |Sì.
        V. pag. 5, art. 3, cap. II e n. 7. |Bene.
        L'art. 3 e dell'art. 5. |Ecco.
        Ad es. Marco, p. es. Anna. |Ecco.
        Mele, pere, ecc. |Poi siamo andati.
        «No.» disse lui. |Se ne andò.
        "Perché?" chiese Anna. |"Perché sì."
        Disse: «No.» |Lei andò via.
        G. Verdi e G. B. Vico. |Morti.
        Nel 44 a.C. morì. |Nel 14 d.C. |Lui no.
        Costa 1.250,50 euro. |Sono 3,5 in più.
        Alle 10:30 a.m. partiamo. |Sì.
        Usiamo ASP.NET e main.py. |Bene.
        È vero. |È falso. |Eh!
        Il piano B. |Poi vediamo.
        P.za Navona e V.le Trastevere. |Belle.
        Cosa? |No! |Va bene.
        Aspetta... forse no. |Bene.
        È il mio. |Don Matteo no.
        Vieni con me. |Lo so. |Non si fa. |Va via. |Ciao.
    """,
    "pt": """
        O Sr. Silva chegou. |O Exmo. Sr. Dr. João também.
        A Sra. Lima, a Dra. Ana e a Profa. Rita. |O Eng. Melo.
        Na pág. 5 e no n.º 3. |A Av. Paulista.
        Ver art. 5, cap. II, vol. 3 e fig. 4. |Bem.
        D. Pedro II e D. Maria. |Reis.
        Maçãs, peras, etc. |Depois fomos embora.
        P. ex. Ana, p.ex. João. |Certo.
        A Silva Ltda. é pequena. |A Petrobras S.A. é grande. |Ela cresceu.
        «Não.» disse ele. |Foi embora.
        "Por quê?" perguntou Ana. |"Porque sim."
        — Não. — disse ele. |Ela saiu.
        Ele disse: «Não.» |Ela saiu.
        J. Saramago e F. Pessoa. |Poetas.
        No séc. XV e no séc. 16. |Sim.
        Em 44 a.C. morreu. |Em 14 d.C. |Ele não.
        Custa 1.250,50 reais. |São 3,5 a mais.
        Às 10:30 a.m. saímos. |Foi bom.
        Usamos ASP.NET e main.py. |Bom.
        O plano B. |Depois vemos.
        É verdade. |É mentira. |À noite não.
        O quê? |Não! |Certo.
        Espera... talvez não. |Bem.
        Sta. Catarina e Sto. André. |Sim.
    """,
    "ru": """
        г. Москва большой. |Он живет на ул. Ленина. |Там хорошо.
        А. С. Пушкин родился в 1799 г. в Москве. |Это было в 1799 г. |Потом он уехал.
        Л.Н. Толстой и Л.Н.Толстой. |Писатель.
        Яблоки, груши и т. д. |Потом мы ушли.
        Это и т. п. вещи, т. е. это. |Т. к. Иван ушёл.
        «Нет.» — сказал он. |Она ушла.
        — Да! — сказал он. |— Нет. |— Да.
        «Почему?» — спросила Анна. |«Потому».
        Он сказал: «Нет.» |Она ушла.
        Проф. Иванов и акад. Петров. |Д-р Сидоров и г-н Попов.
        См. стр. 5, рис. 3, гл. II и табл. 4. |Хорошо.
        Это стоит 5 тыс. руб. за штуку. |Да.
        Это стоит 5 руб. |Он заплатил.
        В XX в. жили иначе. |В 2010-2012 гг. Виктор жил здесь.
        В 5 в. до н. э. было так. |Да.
        Кв. 234, д. 5, корп. 2. |Этаж 3.
        Я дал им. |Потом ушёл.
        Это он. |Это она. |ещё нет.
        Цена 3.5 доллара. |В 10.30 утра.
        Мы используем ASP.NET и main.py. |Да.
        Что? |Нет! |Ладно.
        Подожди... может быть. |Хорошо.
        Он там.|Потом ушёл.
        В г. Волгоград и пл. Мира. |Всё.
        Витамин C. |Он полезен.
    """,
    "ja": """
        「行こう。」と言った。
        「行こう。」と彼は言った。|次の文です。
        「行こう。」って言ってた。|本当だよ。
        「行こう。」|「うん。」
        「行こう。」|はい、行きます。
        「本当？」|とても驚いた。|そう。
        『本当？』と聞いた。|はい。
        『行く。帰る。』と聞いた。|はい。
        『本当？』|そうだ。
        彼は「はい。そうです。」と答えた。|終わり。
        彼は言った。|「行こう。」|それで行った。
        「行くの？」|「うん。」|二人は出た。
        そうです。|違います。|本当！？|はい。
        価格は3.5ドルです。|安い。
        A社のNo. 5です。|Mr. スミスが来た。
        ASP.NETを使う。|main.pyを開く。
        『君の名は。』は映画だ。|見た。
        「だめ！」なんて言わない。|うん。
        「あれ。」を見た。|よし。
        「終わり。」|となりの人が言った。
        （笑）そうです。|次。
        第2回です。|第3回です。
    """,
    "zh": """
        “走吧。”他说。|我们走了。
        他说：“走吧。”|我们走了。
        “走吧。”|“好。”
        「走吧。」他說。|我們走了。
        “为什么？”她问。|“因为。”
        “为什么？”她问道，“你不去？”
        “走吧！”小王笑着说。|大家走了。
        “走吧。”他说着站了起来。|门开了。
        “走吧。”|他没说。
        “走吧。”|我不知道。
        “走吧。”|她说：“好。”
        “走吧。”|我们走了。
        『走吧。』他喊道。|门开了。
        他问：“你去哪儿？我也去。”|然后走了。
        好。|你好吗？|我很好！|谢谢。
        价格是3.5元。|好。
        用ASP.NET写的。|打开main.py。
        Mr. 王来了。|见No. 5。
        他等了……然后走了。|门开了。
        好。|3个人来了。|2010年的事。|iPhone很贵。
        真的？！|是的。
        （他走了。）我们也走。
        “你好！”老师大声喊道。|学生们笑了。
    """,
    "ar": """
        وصل د. أحمد اليوم. |هل هو هنا؟ |نعم.
        «لا.» قال الرجل. |ثم ذهب.
        الساعة 3.5 الآن. |شكرا.
        هذا أ. د. محمد. |مرحبا.
    """,
    "hi": """
        डॉ. सिंह आए। |वह गए।
        प्रो. शर्मा 5 कि.मी. दूर हैं। |हाँ।
        "नहीं।" उसने कहा। |वह गया।
        क्या? |हाँ।
    """,
    "pl": """
        Prof. Kowalski mieszka na ul. Marszałkowskiej. |Św. Jan.
        W 1999 r. w Polsce. |W 1999 r. |Potem poszedł.
        3. miejsce, np. Jan, tzn. on. |Tak.
        Jabłka, gruszki itd. |Potem wyszliśmy.
        Dałem im. |Potem poszedł.
        „Nie. Tak.” powiedział. |Poszedł.
        M.in. Anna i nr 5. |Łódź.
    """,
    "nl": """
        Mevr. De Vries en dhr. Jansen komen. |Ja.
        Bijv. Anna, d.w.z. zij. |Zie blz. 5.
        "Nee." zei hij. |Hij ging.
        Appels, peren enz. |Daarna gingen we.
        Dank u. |Jan komt. |Ik weet dat. |Dat is het best. |Ja.
    """,
    "cs": """
        Dne 3. října přišel. |Viz str. 5.
        Ing. Malý a Mgr. Nová, např. Jan. |Ano.
        Dne 3. 10. 2024 přišel. |Ano.
    """,
    "da": "F.eks. Anna den 3. oktober. |Kom med. |Det er din. |Ja.",
    "sv": "T.ex. Anna kl. 5. |Jag vet det. |Du kan. |Det är bl.a. Kalle.",
    "fi": "Esim. Matti 3. lokakuuta. |Niin.",
    "no": "F.eks. Anna den 3. oktober. |Jeg vet det. |Du kan. |Ja.",
    "hu": "A 2. emelet, pl. Anna. |Nem. |Igen.",
    "tr": "2. Dünya Savaşı 19. yüzyıl. |Prof. Dr. Ali geldi.",
    "uk": "Вул. Хрещатик у м. Київ. |Т. Г. Шевченко народився 1814 р. у селі.",
    "bg": "Живее на ул. Иван Вазов в гр. София. |Да.",
    "el": "Ο κ. Παπαδόπουλος ήρθε. |Π.χ. Η Άννα.",
    "ro": "Dl. Popescu și dr. Ionescu. |Vezi pag. 5.",
    "ca": "El Sr. Puig i la Sra. Mas. |Pàg. 5.",
    "he": "פרופ. כהן בא. |כן.",
    "ko": '"가자." 라고 말했다. |"가자."라고 했다. |그래.',
    "th": "พ.ศ. 2560 ดร. สมชาย มา",
    "vi": "TP. Hồ Chí Minh đẹp. |Vâng.",
    "id": "Bpk. Budi di Jl. Sudirman No. 5. |Ya.",
    "nb": "F.eks. Anna den 3. oktober. |Ja.",
    "hr": "Npr. Ana, 3. listopada. |Da.",
    "deu": "Die 2. Bundesliga beginnt. |Ja.",
    "xx": "Dr. Who is No. 5. |Still two.",
}


@pytest.mark.parametrize(
    ("language", "marked"),
    [(language, line.strip()) for language, lines in MARKED.items() for line in lines.splitlines() if line.strip()],
)
def test_text_is_split_only_at_the_bars(language: str, marked: str) -> None:
    assert split_sentences(marked.replace("|", ""), language) == marked.split("|")


@settings(max_examples=150, deadline=None)
@given(
    text=st.text(max_size=120) | st.lists(st.sampled_from(PIECES)).map("".join),
    language=st.sampled_from(SOURCES),
)
def test_the_sentences_joined_are_the_text(text: str, language: str) -> None:
    assert "".join(split_sentences(text, language)) == (text if text.strip() else "")
    assert all(sentence.strip() for sentence in split_sentences(text, language))


@pytest.mark.parametrize("unit", ["He came. ", "「」。", "« a. ", "Dr. A. ", "no end ", '"a.', "„", "『。", "(etc. A"])
def test_the_work_is_linear_in_the_length_of_the_text(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    real_segment, real_is_end = splitting.segment, splitting.is_end

    def segment(language: str, text: str) -> list[str]:
        nonlocal read
        # Upper bound for sentencex: from each character it scans the whole text.
        read += len(text) ** 2
        return real_segment(language, text)

    def is_end(before: str, after: str, known: Any) -> bool | None:
        nonlocal read
        read += len(before) + len(after)
        return real_is_end(before, after, known)

    monkeypatch.setattr(splitting, "segment", segment)
    monkeypatch.setattr(splitting, "is_end", is_end)
    work = []
    for length in (10_000, 40_000):
        read = 0
        split_sentences((unit * length)[:length], "en")
        work.append(read)
    assert work[1] < 8 * work[0]  # 4 times if linear, 16 times if quadratic


def test_every_row_of_the_table_is_of_a_known_language_and_kind() -> None:
    kinds = set(boundaries.WordLists.__dataclass_fields__) - {"language"}
    rows = boundaries._rows()
    assert {kind for _, kind, _ in rows} == kinds
    assert not [language for language, _, _ in rows if language != "*" and len(language) > 3]
    assert {"en", "de", "fr", "es", "it", "pt", "ru", "pl", "cs", "nl"} <= {
        language for language, kind, _ in rows if kind == "before"
    }
    for language, kind, words in rows:
        assert words, (language, kind)
        assert not [word for word in words if word.endswith(".")], (language, kind)
