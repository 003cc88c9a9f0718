"""The model for pintle worker --mode lines: loaded once, a line of JSON in, a line of JSON out."""
import json
import sys

from model import predict

for line in sys.stdin:
  request = json.loads(line)
  try:
    answer = {'id': request['id'], 'result': predict(request['path'])}
  except Exception as error:
    answer = {'id': request['id'], 'error': repr(error)}
  print(json.dumps(answer), flush=True)
