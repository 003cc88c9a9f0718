package ecs

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestSizes: the sizes are those of the members by their names on the wire, in compact JSON.
func TestSizes(t *testing.T) {
	definition := &ecs.RegisterTaskDefinitionInput{
		Family:               aws.String("f"),
		ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("main"), Image: aws.String("i")}},
	}
	const onTheWire = `{"containerDefinitions":[{"image":"i","name":"main"}],"family":"f"}`
	if n, err := bytesOf(definition); err != nil || n != len(onTheWire) {
		t.Fatalf("size %d, %v; want %d", n, err, len(onTheWire))
	}
	definition.ContainerDefinitions[0].Image = aws.String("i" + strings.Repeat("x", maxDefinitionBytes-len(onTheWire)))
	if err := checkDefinitionSize(definition); err != nil {
		t.Error(err)
	}
	*definition.Family += "f"
	const tooLong = "Actual length: '65537'. Max allowed length is '65536' bytes."
	if err := checkDefinitionSize(definition); err == nil || !strings.Contains(err.Error(), tooLong) {
		t.Errorf("%v, want %s", err, tooLong)
	}
	o := &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{Command: []string{strings.Repeat("x", maxOverridesBytes)}}}}
	if err := checkOverridesSize(o); err == nil || !strings.Contains(err.Error(), "Container Overrides length must be at most 8192") {
		t.Errorf("overrides of over 8 KiB: %v", err)
	}
}
