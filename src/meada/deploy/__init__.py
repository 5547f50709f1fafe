"""A trained model in use: predictions, ONNX, harder copies of its data for other trainers."""
