"""Marathi."""

from .record import FullStops, Rules

RULES = Rules(
    full_stops=FullStops(before="डॉ प्रा श्री श्रीमती सौ कु पं ॲड इ.स उदा कि.मी रु", number="क्र पृ नं"), own_digits=True
)
