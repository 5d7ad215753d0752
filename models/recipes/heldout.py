"""The sentences in the recordings of the demo and the tests. Every recipe excludes them from training."""

from __future__ import annotations

# The recordings: (file stem, ((Kokoro voice, sentence), ...)). Some words are avoided: Whisper transcribes "Rome" as
# "roam" and "two forty-five" as 245.
RECORDINGS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "travel",
        (
            ("af_heart", "What time does the train to Berlin leave?"),
            ("am_michael", "The train to Berlin leaves at half past nine."),
            ("af_heart", "I would like three tickets to Berlin, please."),
            ("am_michael", "A ticket to Berlin costs forty-five euros."),
            ("af_heart", "The restaurant opens at six o'clock in the evening."),
            ("am_michael", "It takes ten minutes to walk to the restaurant."),
        ),
    ),
    (
        "meeting",
        (
            ("bm_george", "The meeting is on Thursday at two thirty."),
            ("bf_emma", "Please send me the budget before Friday."),
            ("bm_george", "My sister will present the new product tomorrow morning."),
            ("am_michael", "There are eleven people in the meeting room."),
            ("bf_emma", "Let's take a break for twenty minutes."),
        ),
    ),
    (
        "day",
        (
            ("af_heart", "What time does the plane to Paris leave?"),
            ("am_michael", "The plane to Paris leaves at ten twenty."),
            ("af_heart", "I would like five tickets to Paris, please."),
            ("am_michael", "A ticket to Paris costs one hundred and sixty euros."),
            ("bm_george", "What is the weather like in London?"),
            ("bf_emma", "It will be sunny tomorrow morning."),
            ("bm_george", "Can we meet at half past six this evening?"),
            ("bf_emma", "The restaurant closes at a quarter past eleven."),
            ("bm_george", "My room number is two hundred and twelve."),
            ("bf_emma", "Breakfast is served at seven thirty-five."),
            ("am_michael", "When does the museum open?"),
            ("bm_george", "This camera costs three hundred and fifty dollars."),
            ("am_michael", "The meeting is on Wednesday at a quarter past two."),
            ("bm_george", "The manager will present the budget on Friday."),
            ("bf_emma", "My mother likes soup and bread."),
            ("am_michael", "Let's listen to music this evening."),
        ),
    ),
)

# Two travellers in Portuguese, for the demo from Portuguese.
PORTUGUESE: tuple[tuple[str, str], ...] = (
    ("pf_dora", "Bom dia! Eu queria três passagens para Lisboa, por favor."),
    ("pm_alex", "O próximo trem para Lisboa parte às dez horas da manhã."),
    ("pf_dora", "Quanto tempo demora a viagem?"),
    ("pm_alex", "A viagem demora duas horas, e cada passagem custa quarenta e cinco euros."),
    ("pf_dora", "Obrigada! O restaurante da estação já está aberto."),
    ("pm_alex", "Ele fica ao lado do museu e fecha à meia-noite."),
)

# The recording of the tests, in the same domain.
TEST_SENTENCES: tuple[tuple[str, str], ...] = (
    ("am_michael", "The plane from Tokyo arrives at seven o'clock in the evening."),
    ("af_heart", "Where is the post office?"),
    ("bm_george", "This umbrella costs twelve dollars."),
    ("af_heart", "My brother likes noodles and fish."),
    ("am_michael", "I want to go to Shanghai next week."),
    ("af_heart", "The museum is closed on Tuesday."),
)

# Chinese for the tests, with Kokoro's phonemes: misaki 0.9.4 (MIT) wrote them, espeak-ng's Chinese ones do not fit.
CHINESE: tuple[tuple[str, str, str], ...] = (
    ("zf_xiaoxiao", "你好，请问火车站在哪里？", "ni↓xau↓, ʨʰi↓ŋwə↘n xwo↓ꭧʰɤ→ꭧa↘n ʦai↘ na↓li↓?"),
    ("zm_yunxi", "好的。", "xau↓ tɤ."),
    ("zf_xiaoxiao", "我们什么时候见面？", "wo↓mən ʂə↗nmɤ ʂɨ↗xou↘ ʨjɛ↘nmjɛ↘n?"),
    ("zm_yunxi", "这家饭店几点开门？", "ꭧɤ↘ʨja→ fa↘ntjɛ↘n ʨi↓tjɛ↓n kʰai→mə↗n?"),
)

# A person reads Jane Austen's "Sense and Sensibility": (clip in the source distribution of pocketsphinx, sentence).
READING: tuple[tuple[str, str], ...] = (
    (
        "sense_and_sensibility_01_austen_64kb-0870",
        "And Mr. John Dashwood had then leisure to consider how much there might be prudently in his power to do for them.",
    ),
    (
        "sense_and_sensibility_01_austen_64kb-0920",
        "Had he married a more amiable woman, he might have been made still more respectable than he was.",
    ),
    ("sense_and_sensibility_01_austen_64kb-0930", "He might even have been made amiable himself."),
)

SENTENCES: frozenset[str] = frozenset(
    text for _, lines in (*RECORDINGS, ("tests", TEST_SENTENCES), ("reading", READING)) for _, text in lines
)

# Shorter ones, such as "好的。", are part of every conversation.
CHINESE_SENTENCES: tuple[str, ...] = tuple(text for _, text, _ in CHINESE if len(text) > 5)
