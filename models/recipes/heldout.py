"""The sentences that the demo and the tests speak. Every recipe keeps them out of what it trains on."""

from __future__ import annotations

# One recording each: (file stem, ((flite voice, sentence), ...)).
RECORDINGS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "travel",
        (
            ("slt", "What time does the train to Berlin leave?"),
            ("rms", "The train to Berlin leaves at half past nine."),
            ("slt", "I would like three tickets to Berlin, please."),
            ("rms", "A ticket to Berlin costs forty-five euros."),
            ("slt", "The restaurant opens at six o'clock in the evening."),
            ("rms", "It takes ten minutes to walk to the restaurant."),
        ),
    ),
    (
        "meeting",
        (
            ("awb", "The meeting is on Thursday at two thirty."),
            ("slt", "Please send me the budget before Friday."),
            ("awb", "My sister will present the new product tomorrow morning."),
            ("rms", "There are eleven people in the meeting room."),
            ("slt", "Let's take a break for fifteen minutes."),
        ),
    ),
    (
        "day",
        (
            ("slt", "What time does the plane to Rome leave?"),
            ("rms", "The plane to Rome leaves at ten twenty."),
            ("slt", "I would like five tickets to Rome, please."),
            ("rms", "A ticket to Rome costs one hundred and sixty euros."),
            ("awb", "What is the weather like in London?"),
            ("slt", "It will be sunny tomorrow morning."),
            ("awb", "Can we meet at half past six this evening?"),
            ("slt", "The restaurant closes at a quarter past eleven."),
            ("awb", "My room number is two hundred and twelve."),
            ("rms", "Breakfast is served at seven thirty-five."),
            ("slt", "When does the museum open?"),
            ("awb", "This camera costs three hundred and fifty dollars."),
            ("rms", "The meeting is on Wednesday at two forty-five."),
            ("awb", "The manager will present the budget on Friday."),
            ("slt", "My mother likes soup and bread."),
            ("rms", "Let's listen to music this evening."),
        ),
    ),
)

# Spoken by the tests, in the same domain.
TEST_SENTENCES: tuple[tuple[str, str], ...] = (
    ("rms", "The plane from Tokyo arrives at seven o'clock in the evening."),
    ("slt", "Where is the post office?"),
    ("awb", "This umbrella costs twelve dollars."),
    ("slt", "My brother likes noodles and fish."),
    ("rms", "I want to go to Shanghai next week."),
    ("slt", "The museum is closed on Tuesday."),
)

SENTENCES: frozenset[str] = frozenset(
    text for _, lines in (*RECORDINGS, ("tests", TEST_SENTENCES)) for _, text in lines
)
