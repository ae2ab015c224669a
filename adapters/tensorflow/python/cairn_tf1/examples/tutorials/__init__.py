"""tensorflow.examples of TensorFlow 1."""
