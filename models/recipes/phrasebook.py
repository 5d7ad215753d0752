"""A bilingual English–Chinese phrase grammar: travel, times, prices, meetings, everyday talk.

The demo's translators are trained on its sentences. The recordings are about the same subjects.
``python models/recipes/phrasebook.py 20`` prints twenty sentences.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

Pair = tuple[str, str]  # English, Chinese
Slot = Callable[[random.Random], Pair]

UNITS_EN = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS_EN = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
DIGITS_ZH = "零一二三四五六七八九"


def number(value: int) -> Pair:
    """An integer from 1 to 999 in words, in both languages."""
    if value >= 100:
        hundreds, rest = divmod(value, 100)
        english, chinese = f"{UNITS_EN[hundreds]} hundred", f"{DIGITS_ZH[hundreds]}百"
        if not rest:
            return english, chinese
        tail_en, tail_zh = number(rest)
        if rest < 10:
            tail_zh = "零" + tail_zh
        elif rest < 20:
            tail_zh = "一" + tail_zh
        return f"{english} and {tail_en}", chinese + tail_zh
    if value < 20:
        chinese = DIGITS_ZH[value] if value < 10 else "十" + (DIGITS_ZH[value - 10] if value > 10 else "")
        return UNITS_EN[value], chinese
    tens, unit = divmod(value, 10)
    english = TENS_EN[tens] + (f"-{UNITS_EN[unit]}" if unit else "")
    return english, DIGITS_ZH[tens] + "十" + (DIGITS_ZH[unit] if unit else "")


def counted(value: int) -> Pair:
    """As ``number``, but before a Chinese measure word, where two is 两."""
    english, chinese = number(value)
    return english, "两" if value == 2 else chinese


def choice(*pairs: Pair) -> Slot:
    return lambda rng: rng.choice(pairs)


def minutes(rng: random.Random) -> Pair:
    english, chinese = counted(rng.choice((2, 3, 5, 10, 15, 20, 25, 30, 40, 45, 50)))
    return f"{english} minutes", f"{chinese}分钟"


def hours(rng: random.Random) -> Pair:
    value = rng.randint(1, 12)
    if value == 1:
        return "one hour", "一个小时"
    english, chinese = counted(value)
    return f"{english} hours", f"{chinese}个小时"


def clock(rng: random.Random) -> Pair:
    hour = rng.randint(1, 12)
    english, chinese = UNITS_EN[hour], counted(hour)[1] + "点"
    form = rng.randrange(4)
    if form == 0:
        return f"{english} o'clock", chinese
    if form == 1:
        return f"half past {english}", chinese + "半"
    if form == 2:
        return f"a quarter past {english}", chinese + "一刻"
    value = rng.choice((10, 15, 20, 25, 30, 35, 40, 45, 50, 55))
    return f"{english} {number(value)[0]}", chinese + number(value)[1] + "分"


def amount(rng: random.Random) -> int:
    return rng.choice((rng.randint(2, 20), rng.randint(21, 99), 100 * rng.randint(1, 9), rng.randint(101, 999)))


def price(rng: random.Random) -> Pair:
    return in_currency(amount(rng), rng)


def in_currency(value: int, rng: random.Random) -> Pair:
    english, chinese = counted(value)
    unit_en, unit_zh = rng.choice((("dollars", "美元"), ("euros", "欧元"), ("pounds", "英镑"), ("yuan", "元")))
    return f"{english} {unit_en}", chinese + unit_zh


def prices() -> list[Pair]:
    """One sentence for every price in the phrasebook."""
    amounts = [counted(value) for value in range(2, 1000)]
    return [(f"This jacket costs {english} dollars.", f"这个夹克{chinese}美元。") for english, chinese in amounts]


def small(rng: random.Random) -> Pair:
    return counted(rng.randint(2, 12))


def age(rng: random.Random) -> Pair:
    return number(rng.randint(3, 99))


def digits(rng: random.Random) -> Pair:
    english, chinese = number(rng.choice((rng.randint(1, 30), rng.randint(1, 99), rng.randint(101, 400))))
    return english, chinese


day = choice(
    ("Monday", "星期一"),
    ("Tuesday", "星期二"),
    ("Wednesday", "星期三"),
    ("Thursday", "星期四"),
    ("Friday", "星期五"),
    ("Saturday", "星期六"),
    ("Sunday", "星期天"),
)
when = choice(
    ("today", "今天"),
    ("tomorrow", "明天"),
    ("tonight", "今晚"),
    ("next week", "下周"),
    ("this afternoon", "今天下午"),
    ("tomorrow morning", "明天早上"),
    ("this evening", "今天晚上"),
    ("on Monday", "星期一"),
    ("on Friday", "星期五"),
    ("on Saturday", "星期六"),
    ("next month", "下个月"),
)
past = choice(
    ("yesterday", "昨天"),
    ("last week", "上周"),
    ("last night", "昨晚"),
    ("this morning", "今天早上"),
    ("last year", "去年"),
    ("last month", "上个月"),
)
part = choice(("in the morning", "早上"), ("in the afternoon", "下午"), ("in the evening", "晚上"))
city = choice(
    ("Beijing", "北京"),
    ("Shanghai", "上海"),
    ("London", "伦敦"),
    ("Paris", "巴黎"),
    ("Berlin", "柏林"),
    ("New York", "纽约"),
    ("Tokyo", "东京"),
    ("Rome", "罗马"),
    ("Boston", "波士顿"),
    ("Madrid", "马德里"),
)
place = choice(
    ("station", "车站"),
    ("airport", "机场"),
    ("hotel", "酒店"),
    ("museum", "博物馆"),
    ("bank", "银行"),
    ("hospital", "医院"),
    ("library", "图书馆"),
    ("park", "公园"),
    ("restaurant", "餐厅"),
    ("office", "办公室"),
    ("supermarket", "超市"),
    ("post office", "邮局"),
    ("school", "学校"),
    ("bus stop", "公交车站"),
    ("market", "市场"),
    ("university", "大学"),
)
vehicle = choice(("train", "火车"), ("bus", "公交车"), ("plane", "飞机"), ("boat", "船"))
person = choice(
    ("my brother", "我哥哥"),
    ("my sister", "我妹妹"),
    ("my mother", "我妈妈"),
    ("my father", "我爸爸"),
    ("my friend", "我的朋友"),
    ("the manager", "经理"),
    ("the doctor", "医生"),
    ("the teacher", "老师"),
    ("the driver", "司机"),
    ("Anna", "安娜"),
    ("Tom", "汤姆"),
    ("Mr. Smith", "史密斯先生"),
    ("Mary", "玛丽"),
    ("my wife", "我妻子"),
    ("my son", "我儿子"),
    ("my daughter", "我女儿"),
)
food = choice(
    ("rice", "米饭"),
    ("bread", "面包"),
    ("soup", "汤"),
    ("fish", "鱼"),
    ("chicken", "鸡肉"),
    ("vegetables", "蔬菜"),
    ("noodles", "面条"),
    ("fruit", "水果"),
    ("eggs", "鸡蛋"),
    ("cheese", "奶酪"),
)
drink = choice(
    ("tea", "茶"), ("coffee", "咖啡"), ("water", "水"), ("milk", "牛奶"), ("beer", "啤酒"), ("orange juice", "橙汁")
)
item = choice(
    ("ticket", "票"),
    ("key", "钥匙"),
    ("passport", "护照"),
    ("bag", "包"),
    ("phone", "手机"),
    ("umbrella", "雨伞"),
    ("map", "地图"),
    ("book", "书"),
    ("camera", "相机"),
    ("computer", "电脑"),
    ("watch", "手表"),
    ("jacket", "夹克"),
)
mine = choice(("my", "我的"), ("your", "你的"), ("his", "他的"), ("her", "她的"), ("our", "我们的"))
subject = choice(
    ("the report", "报告"),
    ("the budget", "预算"),
    ("the project", "项目"),
    ("the contract", "合同"),
    ("the schedule", "日程"),
    ("the plan", "计划"),
    ("the results", "结果"),
    ("the new product", "新产品"),
)
weather = choice(
    ("cold", "很冷"), ("hot", "很热"), ("warm", "很暖和"), ("rainy", "有雨"), ("sunny", "晴朗"), ("windy", "有风")
)
feeling = choice(
    ("tired", "累"), ("hungry", "饿"), ("happy", "高兴"), ("busy", "忙"), ("thirsty", "渴"), ("sick", "不舒服")
)
colour = choice(("red", "红色的"), ("blue", "蓝色的"), ("green", "绿色的"), ("black", "黑色的"), ("white", "白色的"))
language = choice(
    ("English", "英语"), ("Chinese", "中文"), ("French", "法语"), ("German", "德语"), ("Spanish", "西班牙语")
)
activity = choice(
    ("read a book", "看书"),
    ("watch a film", "看电影"),
    ("go swimming", "去游泳"),
    ("listen to music", "听音乐"),
    ("play tennis", "打网球"),
    ("learn Chinese", "学中文"),
    ("cook dinner", "做晚饭"),
    ("go for a walk", "去散步"),
    ("take a photo", "拍照"),
    ("call a taxi", "叫出租车"),
    ("buy some fruit", "买些水果"),
    ("rest for a while", "休息一会儿"),
)
direction = choice(("left", "左"), ("right", "右"))
ordinal = choice(("first", "第一"), ("second", "第二"), ("third", "第三"), ("next", "下一"))

SLOTS: dict[str, Slot] = {
    name: value
    for name, value in list(globals().items())
    if name
    in [
        "day",
        "when",
        "past",
        "part",
        "city",
        "place",
        "vehicle",
        "person",
        "food",
        "drink",
        "item",
        "mine",
        "subject",
        "weather",
        "feeling",
        "colour",
        "language",
        "activity",
        "direction",
        "ordinal",
        "minutes",
        "hours",
        "clock",
        "price",
        "small",
        "digits",
        "age",
    ]
}

# Templates with {slot}, and {slot2} for a second value from the same slot. Both languages use the same names.
TEMPLATES: tuple[Pair, ...] = (
    ("What time does the {vehicle} to {city} leave?", "去{city}的{vehicle}几点出发？"),
    ("The {vehicle} to {city} leaves at {clock}.", "去{city}的{vehicle}{clock}出发。"),
    ("The {vehicle} from {city} arrives at {clock} {part}.", "从{city}来的{vehicle}{part}{clock}到达。"),
    ("The next {vehicle} leaves in {minutes}.", "下一班{vehicle}{minutes}后出发。"),
    ("How do I get to the {place}?", "去{place}怎么走？"),
    ("Where is the {place}?", "{place}在哪里？"),
    ("Is there a {place} near here?", "这附近有{place}吗？"),
    ("The {place} is next to the {place2}.", "{place}在{place2}旁边。"),
    ("Turn {direction} at the {place}.", "在{place}向{direction}转。"),
    ("Turn {direction} and then go straight.", "向{direction}转，然后直走。"),
    ("It takes {minutes} to walk to the {place}.", "走到{place}需要{minutes}。"),
    ("The flight to {city} takes {hours}.", "飞到{city}需要{hours}。"),
    ("I want to go to {city} {when}.", "我{when}想去{city}。"),
    ("We went to {city} {past}.", "我们{past}去了{city}。"),
    ("{person} lives in {city}.", "{person}住在{city}。"),
    ("{person} is waiting at the {place}.", "{person}在{place}等着。"),
    ("{person} arrived at the {place} {past}.", "{person}{past}到了{place}。"),
    ("I would like a room for {small} nights.", "我想要一个房间，住{small}晚。"),
    ("My room number is {digits}.", "我的房间号是{digits}。"),
    ("The {place} opens at {clock} {part}.", "{place}{part}{clock}开门。"),
    ("The {place} closes at {clock}.", "{place}{clock}关门。"),
    ("The {place} is closed on {day}.", "{place}{day}不开门。"),
    ("I would like {small} tickets to {city}, please.", "请给我{small}张去{city}的票。"),
    ("A ticket to {city} costs {price}.", "去{city}的票价是{price}。"),
    ("How much is this {item}?", "这个{item}多少钱？"),
    ("This {item} costs {price}.", "这个{item}{price}。"),
    ("That is {price} altogether.", "一共{price}。"),
    ("It is too expensive.", "太贵了。"),
    ("Do you have a {colour} {item}?", "你们有{colour}{item}吗？"),
    ("I am looking for {mine} {item}.", "我在找{mine}{item}。"),
    ("I lost {mine} {item} {past}.", "我{past}丢了{mine}{item}。"),
    ("Please give me {mine} {item}.", "请把{mine}{item}给我。"),
    ("{mine} {item} is on the table.", "{mine}{item}在桌子上。"),
    ("Where did you buy the {item}?", "你在哪里买的{item}？"),
    ("Can I pay by card?", "我可以刷卡吗？"),
    ("Can I pay in cash?", "我可以付现金吗？"),
    ("The meeting starts at {clock}.", "会议{clock}开始。"),
    ("The meeting is on {day} at {clock}.", "会议在{day}{clock}。"),
    ("The meeting was very long.", "会议很长。"),
    ("Let's talk about {subject} {when}.", "我们{when}谈谈{subject}吧。"),
    ("Have you finished {subject}?", "你完成{subject}了吗？"),
    ("Please send me {subject} before {day}.", "请在{day}之前把{subject}发给我。"),
    ("{person} will present {subject} {when}.", "{person}{when}将介绍{subject}。"),
    ("We need {small} more days for {subject}.", "{subject}我们还需要{small}天。"),
    ("There are {small} people in the meeting room.", "会议室里有{small}个人。"),
    ("Let's take a break for {minutes}.", "我们休息{minutes}吧。"),
    ("Can we meet at {clock} {when}?", "我们{when}{clock}见面可以吗？"),
    ("Does anybody have a question?", "有人有问题吗？"),
    ("I agree with {person}.", "我同意{person}的看法。"),
    ("I would like some {food}, please.", "请给我一些{food}。"),
    ("I would like a cup of {drink}, please.", "请给我一杯{drink}。"),
    ("Would you like {drink} or {drink2}?", "你想要{drink}还是{drink2}？"),
    ("I don't eat {food}.", "我不吃{food}。"),
    ("{person} likes {food} and {food2}.", "{person}喜欢{food}和{food2}。"),
    ("We had {food} for dinner {past}.", "我们{past}晚饭吃了{food}。"),
    ("A table for {small}, please.", "请给我一张{small}人的桌子。"),
    ("The {food} here is very good.", "这里的{food}很好吃。"),
    ("Can I have the menu, please?", "请给我菜单好吗？"),
    ("Breakfast is served at {clock}.", "早餐{clock}供应。"),
    ("What is the weather like in {city}?", "{city}的天气怎么样？"),
    ("It is {weather} in {city} today.", "今天{city}天气{weather}。"),
    ("It will be {weather} {when}.", "{when}天气{weather}。"),
    ("I am very {feeling}.", "我很{feeling}。"),
    ("Are you {feeling}?", "你{feeling}吗？"),
    ("{person} was {feeling} {past}.", "{person}{past}很{feeling}。"),
    ("Do you speak {language}?", "你会说{language}吗？"),
    ("I speak a little {language}.", "我会说一点{language}。"),
    ("{person} is learning {language}.", "{person}在学{language}。"),
    ("Please speak more slowly.", "请说慢一点。"),
    ("I don't understand.", "我不明白。"),
    ("Could you say that again?", "你能再说一遍吗？"),
    ("I want to {activity} {when}.", "我{when}想{activity}。"),
    ("Do you want to {activity} with me?", "你想和我一起{activity}吗？"),
    ("{person} wants to {activity}.", "{person}想{activity}。"),
    ("Let's {activity} {when}.", "我们{when}{activity}吧。"),
    ("I have {small} brothers and {small2} sisters.", "我有{small}个兄弟和{small2}个姐妹。"),
    ("{person} is {age} years old.", "{person}{age}岁。"),
    ("What is your name?", "你叫什么名字？"),
    ("Where are you from?", "你是哪里人？"),
    ("I am from {city}.", "我来自{city}。"),
    ("I work at a {place}.", "我在{place}工作。"),
    ("{person} works at the {place}.", "{person}在{place}工作。"),
    ("Good morning.", "早上好。"),
    ("Good evening.", "晚上好。"),
    ("Good afternoon, everyone.", "大家下午好。"),
    ("Thank you very much.", "非常感谢。"),
    ("Thank you.", "谢谢。"),
    ("You are welcome.", "不客气。"),
    ("Yes, please.", "好的，请。"),
    ("No, thank you.", "不用，谢谢。"),
    ("Excuse me, what time is it?", "请问，现在几点？"),
    ("It is {clock}.", "现在{clock}。"),
    ("See you {when}.", "{when}见。"),
    ("Nice to meet you.", "很高兴认识你。"),
    ("Please wait here for {minutes}.", "请在这里等{minutes}。"),
    ("Call me at {clock} {when}.", "{when}{clock}给我打电话。"),
    ("{person} called me at {clock}.", "{person}{clock}给我打了电话。"),
    ("I need to go to the {place} {when}.", "我{when}得去{place}。"),
    ("Please call a doctor.", "请叫医生。"),
    ("The {ordinal} bus goes to the {place}.", "{ordinal}班公交车去{place}。"),
    ("The train is {minutes} late.", "火车晚点{minutes}。"),
    ("Platform {digits}, please.", "请到{digits}号站台。"),
    ("The train leaves from platform {digits}.", "火车从{digits}号站台出发。"),
    ("How long does it take to get to {city}?", "到{city}要多长时间？"),
    ("When does the {place} open?", "{place}什么时候开门？"),
)

# Templates for a given number: {number} is a name, {counted} a quantity, {price} an amount with a currency.
NUMBER_TEMPLATES: tuple[Pair, ...] = (
    ("{number}.", "{number}。"),
    ("{price}.", "{price}。"),
    ("It costs {price}.", "这个要{price}。"),
    ("This {item} costs {price}.", "这个{item}{price}。"),
    ("A ticket to {city} costs {price}.", "去{city}的票价是{price}。"),
    ("That is {price} altogether.", "一共{price}。"),
    ("My room number is {number}.", "我的房间号是{number}。"),
    ("Platform {number}, please.", "请到{number}号站台。"),
    ("The train leaves from platform {number}.", "火车从{number}号站台出发。"),
    ("There are {counted} people here.", "这里有{counted}个人。"),
    ("{person} is {counted} years old.", "{person}{counted}岁。"),
    ("I am {counted} years old.", "我{counted}岁。"),
)


def _sentence_case(text: str) -> str:
    return text[0].upper() + text[1:]


def numbers(seed: int) -> list[Pair]:
    """Sentences with every number from 2 to 999. In random ``draws``, the most frequent and round numbers are rare."""
    rng, found = random.Random(seed), []
    for value in range(2, 1000):
        slots: dict[str, Slot] = {
            "number": lambda _, value=value: number(value),
            "counted": lambda _, value=value: counted(value),
            "price": lambda rng, value=value: in_currency(value, rng),
        }
        templates = [pair for pair in NUMBER_TEMPLATES if value < 100 or "years" not in pair[0]]
        for _ in range(_repetitions(value)):
            found.append(_fill(rng.choice(templates), SLOTS | slots, rng))
    return found


def _repetitions(value: int) -> int:
    """Sentences per number. One-word numbers (seven, seventy, seventeen) are the most frequent and have no context."""
    if value <= 20 or value in range(30, 100, 10):
        return 72
    return 24 if value < 100 or value % 100 == 0 else 4


def generate(rng: random.Random) -> Pair:
    """One random sentence as an (English, Chinese) pair."""
    # Draw templates without slots less often: they are fixed phrases that would fill the corpus.
    weights = [1.0 if "{" in english else 0.3 for english, _ in TEMPLATES]
    return _fill(rng.choices(TEMPLATES, weights)[0], SLOTS, rng)


def _fill(template: Pair, slots: dict[str, Slot], rng: random.Random) -> Pair:
    english, chinese = template
    used: set[str] = set()
    for name in _slot_names(english):
        slot_en, slot_zh = slots[name.rstrip("2")](rng)
        while slot_en in used and name.endswith("2"):
            slot_en, slot_zh = slots[name.rstrip("2")](rng)
        used.add(slot_en)
        english = english.replace("{" + name + "}", slot_en)
        chinese = chinese.replace("{" + name + "}", slot_zh)
    return _sentence_case(english), chinese


def _slot_names(template: str) -> list[str]:
    return [piece.split("}")[0] for piece in template.split("{")[1:]]


def draws(count: int, seed: int, exclude: frozenset[str] = frozenset()) -> list[Pair]:
    """Draw ``count`` sentences, so that templates with few combinations are as frequent as those with many."""
    rng = random.Random(seed)
    found: list[Pair] = []
    while len(found) < count:
        pair = generate(rng)
        if pair[0] not in exclude:
            found.append(pair)
    return found


def corpus(count: int, seed: int, exclude: frozenset[str] = frozenset()) -> list[Pair]:
    """``count`` sentences with different English sides, none of which is in ``exclude``."""
    rng = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        english, chinese = generate(rng)
        if english not in exclude:
            found.setdefault(english, chinese)
    return list(found.items())


if __name__ == "__main__":
    for pair in corpus(int(sys.argv[1]) if len(sys.argv) > 1 else 20, seed=1):
        print("\t".join(pair))
