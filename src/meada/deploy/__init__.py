"""Use a trained model: predictions, ONNX export, the Hugging Face Hub, adversarial copies of its data."""
