package appautoscaling

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
)

// The errors of Application Auto Scaling. Clients know them by their codes.

func invalid(format string, args ...any) error {
	return &types.ValidationException{Message: account.Message(format, args...)}
}

func missing(field string) error {
	return invalid("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", field)
}

// notFound returns the error for something that a resource doesn't have.
func notFound(what string, r resource) error {
	return &types.ObjectNotFoundException{
		Message: account.Message("No %s for service namespace: %s, resource ID: %s, scalable dimension: %s",
			what, r.namespace, *r.id, r.dimension),
	}
}

func tooMany(format string, args ...any) error {
	return &types.LimitExceededException{Message: account.Message(format, args...)}
}

func resourceNotFound(arn string) error {
	return &types.ResourceNotFoundException{
		Message:      account.Message("No scalable target found for resource ARN: %s", arn),
		ResourceName: &arn,
	}
}

// refusedBy words another service's refusal for the caller. It leaves other errors alone.
func refusedBy(service string, err error) error {
	var refused smithy.APIError
	if !errors.As(err, &refused) {
		return err
	}
	return &types.FailedResourceAccessException{
		Message: account.Message("%s: %s (Error Code: %s)", service, refused.ErrorMessage(), refused.ErrorCode()),
	}
}
