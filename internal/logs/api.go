package logs

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// nameTooLong is what CloudWatch Logs says of long names, as recorded on AWS.
const nameTooLong = "Invalid LogGroup or LogStream, both must have length less than or equal to 512."

// API describes CloudWatch Logs as served by service.
func API(service call.Service) model.API {
	return model.API{
		Name:         "logs",
		Title:        "CloudWatch Logs",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "Logs_20140328",
		CamelCase:    true,
		Operations:   modelOperations,
		Unions:       modelUnions,
		Unavailable:  "ServiceUnavailableException",
		Constraints: model.Constraints{
			Code:    "InvalidParameterException",
			Table:   modelConstraints,
			TooLong: map[string]string{"LogGroupName": nameTooLong, "LogStreamName": nameTooLong},
		},
		MaxBody: 4 << 20, // PutLogEvents takes 1 MiB of text and up to 10,000 events; JSON adds escapes and names
		Names:   map[string]string{"DescribeDestinationsInput.DestinationNamePrefix": "DestinationNamePrefix"},
		Service: service,
	}
}
