"""Chinese. Its two scripts are the business of ``pipeline.languages.chinese``."""

import re

from .clock import HOUR, MORNING, Clock
from .record import Rules

_PARTS = {
    "上午": MORNING, "早上": MORNING, "早晨": MORNING, "清晨": MORNING, "凌晨": range(7), "中午": range(11, 14),
    "下午": range(12, 20), "傍晚": range(16, 20), "晚上": {0, *range(17, 24)},
}  # fmt: skip
_SUBJECT = r"(?:(?![没沒不])[^\s，。！？：；、“”「」『』]){0,8}?"
_VERB = r"(?:[说說问問答喊叫嚷骂罵笑哭叹嘆吼]|心想|告诉[你我他她]|告訴[你我他她]|(?<![知味街频頻])道)"

RULES = Rules(
    encoding="gb18030",
    separators=",.",
    writes_digits=True,
    grouped=False,
    scales=(("亿", 8), ("万", 4)),
    currencies={
        "$": (("", "美元"), ("$", ""), ("", "元"), ("", "块"), ("", "美金")),
        "€": (("", "欧元"), ("€", ""), ("", "欧")),
        "£": (("", "英镑"), ("£", ""), ("", "镑")),
        "¥": (("", "元"), ("¥", ""), ("", "日元"), ("", "块")),
        "R$": (("", "雷亚尔"), ("R$", "")),
    },
    clock=Clock(
        pattern=rf"(?P<part>{'|'.join(_PARTS)})?(?<![\d.,:/$€£-])"
        rf"{HOUR}(?:[点點](?P<half>半)?(?:(?P<minute>[0-5]\d)分?)?(?:钟|整)?|:(?P<clock>[0-5]\d))",
        parts=_PARTS,
        forms=("{}点{:02}分", "{}点{:02}", "{}:{:02}", "{:02}:{:02}", "{}：{:02}"),
        whole_hours=("{}点", "{}点钟", "{}点整"),
        half_hour="{}点半",
        named={12: ("中午",)},
        written_parts=(("凌晨", 6), ("上午", 12), ("中午", 13), ("下午", 18), ("晚上", 24)),
        parts_first=True,
        marked=True,
    ),
    speaking=re.compile(
        rf"{_SUBJECT}{_VERB}(?:道|了[一几幾]?[句声聲遍]?|着|著|完)?(?:[，。！,.]|$)"
        rf"|{_SUBJECT}[说說问問笑喊叫答](?:着|著|道|完|罢|罷)(?![：:])"
    ),
)
