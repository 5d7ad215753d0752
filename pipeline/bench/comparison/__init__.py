"""This decoder and its peers: the same weights and sentences, in turns."""
