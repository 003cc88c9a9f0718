package sns

import (
	"net/http"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon SNS. The service answers its calls.
func API(service call.Service) model.API {
	return model.API{
		Name:        "sns",
		Title:       "Amazon SNS",
		Protocols:   []model.Protocol{model.Query},
		Version:     "2010-03-31",
		Namespace:   "http://sns.amazonaws.com/doc/2010-03-31/",
		Operations:  modelOperations,
		Statuses:    modelStatuses,
		QueryErrors: map[string]model.QueryError{"AccessDeniedException": {Code: "AuthorizationError", Status: http.StatusForbidden}},
		Constraints: model.Constraints{Code: "ValidationError", Table: modelConstraints},
		Names: map[string]string{
			"CheckIfPhoneNumberIsOptedOutInput.PhoneNumber": "phoneNumber",
			"CheckIfPhoneNumberIsOptedOutOutput.IsOptedOut": "isOptedOut",
			"GetSMSAttributesInput.Attributes":              "attributes",
			"GetSMSAttributesOutput.Attributes":             "attributes",
			"ListPhoneNumbersOptedOutInput.NextToken":       "nextToken",
			"ListPhoneNumbersOptedOutOutput.NextToken":      "nextToken",
			"ListPhoneNumbersOptedOutOutput.PhoneNumbers":   "phoneNumbers",
			"OptInPhoneNumberInput.PhoneNumber":             "phoneNumber",
			"SetSMSAttributesInput.Attributes":              "attributes",
		},
		FormNames: map[string]model.FormName{
			"PublishInput.MessageAttributes":             {Key: "Name", Value: "Value"},
			"PublishBatchRequestEntry.MessageAttributes": {Key: "Name", Value: "Value"},
		},
		Service: service,
	}
}
