"""A model for which any file is an image: it tells the light from the dark, and takes a while."""
import os
import time


def predict(path):
  with open(path, 'rb') as f:
    data = f.read()
  if not data:
    raise ValueError('the image is empty')
  time.sleep(float(os.environ.get('MODEL_SECONDS', '0.5')))
  light = sum(data) / len(data) / 255
  return {'image': os.path.basename(path), 'class': 'light' if light > 0.5 else 'dark', 'score': round(abs(2 * light - 1), 3)}
