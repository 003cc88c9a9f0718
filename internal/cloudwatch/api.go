package cloudwatch

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Amazon CloudWatch as served by service. Its newest clients speak CBOR, older ones JSON, and the oldest Query.
func API(service call.Service) model.API {
	return model.API{
		Name:         "monitoring",
		Title:        "Amazon CloudWatch",
		Protocols:    []model.Protocol{model.CBOR, model.JSON10, model.Query},
		TargetPrefix: "GraniteServiceVersion20100801",
		Version:      "2010-08-01",
		Namespace:    "http://monitoring.amazonaws.com/doc/2010-08-01/",
		QueryErrors:  queryErrors(),
		Operations:   modelOperations,
		Unions:       modelUnions,
		Constraints: model.Constraints{
			Code:  validationCode,
			Table: modelConstraints,
			// Operations on metrics and dashboards predate these messages.
			Only: []string{"DescribeAlarmHistory", "DescribeAlarms", "PutMetricAlarm", "SetAlarmState"},
		},
		Names: map[string]string{
			"DashboardInvalidInputError.Message":                     "message",
			"DashboardInvalidInputError.DashboardValidationMessages": "dashboardValidationMessages",
			"DashboardNotFoundError.Message":                         "message",
			"InvalidFormatFault.Message":                             "message",
			"InvalidNextToken.Message":                               "message",
			"InvalidParameterCombinationException.Message":           "message",
			"InvalidParameterValueException.Message":                 "message",
			"LimitExceededFault.Message":                             "message",
			"MissingRequiredParameterException.Message":              "message",
			"ResourceNotFound.Message":                               "message",
		},
		Service: service,
	}
}

// queryErrors returns the Query names of the model's errors, and of the one that the model lacks.
func queryErrors() map[string]model.QueryError {
	all := model.QueryErrors(cloudwatch.TypeRegistry)
	all[validationCode] = model.QueryError{Code: "ValidationError", Status: http.StatusBadRequest}
	return all
}
