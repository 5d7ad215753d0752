"""Compare this decoder with its peers on the same weights and sentences, in turns."""
