package sqs

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon SQS to the wire, which calls service for each operation. Clients speak JSON. Older ones speak Query, and
// send it to the queue's URL.
func API(service call.Service) model.API {
	return model.API{
		Name:         "sqs",
		Title:        "Amazon SQS",
		Protocols:    []model.Protocol{model.JSON10, model.Query},
		TargetPrefix: "AmazonSQS",
		ErrorSpace:   "com.amazonaws.sqs#",
		Version:      "2012-11-05",
		Namespace:    "http://queue.amazonaws.com/doc/2012-11-05/",
		QueryErrors:  queryErrors(),
		Operations:   modelOperations,
		Names:        memberNames(),
		FormNames:    modelFormNames,
		URLMember:    "QueueUrl",
		TellZero:     true,
		ErrorDetail:  true,
		LenientForms: true,
		MaxBody:      8 << 20, // a message is up to 1 MiB; JSON and forms add their escapes
		Service:      service,
	}
}

// memberNames returns the wire names of members that follow no rule, such as errors' messages.
func memberNames() map[string]string {
	names := map[string]string{
		"CreateQueueInput.Tags":                      "tags",
		"ListDeadLetterSourceQueuesOutput.QueueUrls": "queueUrls",
	}
	for _, entry := range sqs.TypeRegistry.Entries {
		if _, ok := entry.New().(smithy.APIError); ok {
			names[entry.Schema.ID().Name+".Message"] = "message"
		}
	}
	return names
}

// queryErrors returns the Query names of the model's errors, and of the errors that the model lacks.
func queryErrors() map[string]model.QueryError {
	all := model.QueryErrors(sqs.TypeRegistry)
	for name, code := range map[string]string{
		"InvalidParameterValueException":    "InvalidParameterValue",
		"MissingRequiredParameterException": "MissingParameter",
		"AccessDeniedException":             "AccessDenied",
	} {
		all[name] = model.QueryError{Code: code, Status: http.StatusBadRequest}
	}
	missing := all["QueueDoesNotExist"]
	missing.Message = "The specified queue does not exist for this wsdl version."
	all["QueueDoesNotExist"] = missing
	return all
}
