"""The guide's worker: it takes events from the queue, and works on the objects that they tell of.

Its loop is the guide's own. Only the model is another: one that needs neither a network nor a GPU.
"""
from model import predict

import boto3
import json
import os

bucket = boto3.resource('s3').Bucket('ml-gpu-example')
queue = boto3.resource('sqs').get_queue_by_name(QueueName='example-gpu-queue')


def processImage(file):
  bucket.download_file(file, file)
  print('Predicted:', predict(file))
  os.remove(file)


def startWorker():
  while True:
    for message in queue.receive_messages(VisibilityTimeout=8000, MaxNumberOfMessages=10):
      key = json.loads(message.body)['Records'][0]['s3']['object']['key']
      processImage(key)
      message.delete()


startWorker()
