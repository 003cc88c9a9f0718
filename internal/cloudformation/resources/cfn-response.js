// Answers requests of CloudFormation's custom resources, for functions whose code is in a template.
exports.SUCCESS = 'SUCCESS';
exports.FAILED = 'FAILED';

exports.send = function (event, context, responseStatus, responseData, physicalResourceId, noEcho) {
  return new Promise((done, fail) => {
    const answer = JSON.stringify({
      Status: responseStatus,
      Reason: 'See the details in CloudWatch Log Stream: ' + context.logStreamName,
      PhysicalResourceId: physicalResourceId || context.logStreamName,
      StackId: event.StackId,
      RequestId: event.RequestId,
      LogicalResourceId: event.LogicalResourceId,
      NoEcho: noEcho || false,
      Data: responseData,
    });
    console.log('Response body:\n', answer);
    const client = require(event.ResponseURL.startsWith('https:') ? 'https' : 'http');
    const request = client.request(event.ResponseURL, {
      method: 'PUT', headers: { 'content-type': '', 'content-length': Buffer.byteLength(answer) },
    }, got => {
      console.log('Status code: ' + got.statusCode);
      got.resume();
      got.on('end', () => { context.done(); done(); });
    });
    request.on('error', e => { console.log('send(..) failed: ' + e); context.done(e); fail(e); });
    request.end(answer);
  });
};
