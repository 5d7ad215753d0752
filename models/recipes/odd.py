"""Lines of odd input for a translator, made by rule: the same 2,000 for each run."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

LINES = 2000
# Words of other languages, which a recogniser writes when it takes speech for the wrong language.
_OTHER = (
    "der Zug fährt heute nicht weil die Brücke gesperrt ist und niemand weiß wann",
    "je ne sais pas où nous allons demain mais il faut partir très tôt",
    "no tengo tiempo para hablar ahora porque mi hermana llega mañana por la noche",
    "non ho capito bene cosa vuole dire questa parola nella tua lingua",
    "o trem para a cidade parte às nove horas e chega depois do almoço",
    "мы не знаем когда придёт поезд потому что сегодня праздник",
    "bugün hava çok güzel ama yarın yağmur yağacak diyorlar",
    "vi vet inte när mötet börjar men det är redan sent",
    "昨日 は 友達 と 駅 で 会って コーヒー を 飲みました",
    "내일 은 친구 와 함께 시장 에 가려고 합니다",
    "saya tidak tahu di mana kunci rumah itu disimpan kemarin",
    "chúng tôi muốn đặt một bàn cho bốn người tối nay",
)
_FILLERS = {"en": ("um", "uh", "I mean", "you know", "like", "well"), "zh": ("嗯", "那个", "就是", "呃", "然后")}
_SIGNS = (
    "$3.50",
    "10:30",
    "3/4",
    "+49 123 4567",
    "www.example.com",
    "A4",
    "№ 7",
    "50 %",
    "20 °C",
    "😀",
    "...",
    "—",
    "B2B",
    "404",
)


def odd_lines(sentences: Sequence[str], language: str) -> list[str]:
    """``LINES`` lines: capitals, fragments, lists, stammers, other languages, and numbers, a sixth of each.

    ``sentences`` are in ``language``, "en" or "zh".
    """
    rng = random.Random(38)
    gap = "" if language == "zh" else " "
    units = [list(text) if language == "zh" else text.split() for text in sentences]
    words = [unit for text in units for unit in text]

    def capitals() -> str:
        return " ".join(rng.sample(sentences, rng.choice((1, 1, 2)))).upper()

    def fragment() -> str:
        text = rng.choice(units)
        start = rng.randrange(len(text))
        return gap.join(text[start : start + rng.randint(1, 5)])

    def listed() -> str:
        joint = (
            rng.choice(("、", "，", "\n", "；"))
            if language == "zh"
            else rng.choice((", ", "; ", " / ", "\n- ", " and "))
        )
        width = 2 if language == "zh" else 1
        return joint.join(gap.join(rng.choices(words, k=width)) for _ in range(rng.randint(3, 14)))

    def stammered() -> str:
        text = list(rng.choice(units))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text[at:at] = rng.choice(([text[at]] * rng.randint(1, 3), [rng.choice(_FILLERS[language])]))
        return gap.join(text)

    def foreign() -> str:
        text = rng.choice(_OTHER).split()
        start = rng.randrange(len(text) - 3)
        return " ".join(text[start : start + rng.randint(3, 12)])

    def numbers() -> str:
        signs = [rng.choice((*_SIGNS, str(rng.randrange(10 ** rng.randint(1, 9))))) for _ in range(rng.randint(1, 6))]
        return gap.join([*signs, *rng.choice(units)[: rng.randint(0, 3)]])

    kinds: tuple[Callable[[], str], ...] = (capitals, fragment, listed, stammered, foreign, numbers)
    return [kinds[number % len(kinds)]() for number in range(LINES)]
