"""From a Marian checkpoint of any kind to the streaming layout: two graphs made for token-by-token decoding."""
