package ssm

import (
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/model"
)

// API describes Systems Manager. The service answers its calls.
func API(service call.Service) model.API {
	return model.API{
		Name:         "ssm",
		Title:        "AWS Systems Manager",
		Protocols:    []model.Protocol{model.JSON11},
		TargetPrefix: "AmazonSSM",
		Unavailable:  "InternalServerError",
		Operations:   modelOperations,
		Unions:       modelUnions,
		Names:        memberNames(),
		Constraints:  model.Constraints{Code: "ValidationException", Table: modelConstraints},
		Service:      service,
	}
}

// lowerMessages are the errors whose message begins with a lower-case letter.
var lowerMessages = []string{
	"HierarchyLevelLimitExceededException", "HierarchyTypeMismatchException", "IncompatiblePolicyException",
	"InvalidAllowedPatternException", "InvalidFilterOption", "InvalidInstanceInformationFilterValue", "InvalidInstancePropertyFilterValue",
	"InvalidKeyId", "InvalidPolicyAttributeException", "InvalidPolicyTypeException", "OpsMetadataAlreadyExistsException",
	"OpsMetadataInvalidArgumentException", "OpsMetadataKeyLimitExceededException", "OpsMetadataLimitExceededException",
	"OpsMetadataNotFoundException", "OpsMetadataTooManyUpdatesException", "ParameterAlreadyExists", "ParameterLimitExceeded",
	"ParameterMaxVersionLimitExceeded", "ParameterNotFound", "ParameterPatternMismatchException", "ParameterVersionLabelLimitExceeded",
	"ParameterVersionNotFound", "PoliciesLimitExceededException", "UnsupportedParameterType",
}

// memberNames returns the wire names of members that follow no rule.
func memberNames() map[string]string {
	names := map[string]string{
		"InstancePropertyFilter.ValueSet":    "valueSet",
		"InstanceInformationFilter.ValueSet": "valueSet",
	}
	for _, filter := range []string{
		"AssociationFilter", "CommandFilter", "DocumentFilter", "InstanceInformationFilter", "InstancePropertyFilter", "SessionFilter",
	} {
		names[filter+".Key"] = "key"
		names[filter+".Value"] = "value"
	}
	for _, name := range lowerMessages {
		names[name+".Message"] = "message"
	}
	return names
}
