"""Operations on batches of images that methods, spaces and validation share."""
