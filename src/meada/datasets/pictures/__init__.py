"""Folders of pictures: decoding, caching and listing them."""
