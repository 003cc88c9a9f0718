package ecs

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestRunOnNoPlatform: versions of Fargate's platform are refused by name, and nothing runs.
func TestRunOnNoPlatform(t *testing.T) {
	s, store := newTestService(t)
	registerNode(t, s)
	_, err := s.RunTask(t.Context(), &ecs.RunTaskInput{TaskDefinition: aws.String("f"), PlatformVersion: aws.String("1.4.0")})
	if refused := (*types.UnsupportedFeatureException)(nil); !errors.As(err, &refused) || !strings.Contains(*refused.Message, "platformVersion") {
		t.Errorf("got %v", err)
	}
	for task := range store.View().Tasks.All() {
		t.Errorf("%s runs", *task.TaskArn)
	}
}
