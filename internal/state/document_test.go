package state_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestDocumentsAreKept: what a lifecycle hook hands its function is as it was given after a restart.
func TestDocumentsAreKept(t *testing.T) {
	for _, text := range []string{`{"a":{"b":[1,2.50,"x",null,true]},"n":12345678901234567890}`, `[1,"2",true]`, `"text"`} {
		details, err := state.Document([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		hooks := []types.DeploymentLifecycleHook{{HookDetails: details}, {RoleArn: aws.String("role")}}
		c := &types.DeploymentConfiguration{LifecycleHooks: hooks}
		dir := t.TempDir()
		s := statetest.OpenIn(t, dir)
		err = s.Update(t.Context(), func(tx *state.Tx) error {
			tx.Services.Put(&state.Service{Service: types.Service{ServiceArn: aws.String("s"), DeploymentConfiguration: c}})
			tx.ServiceDeployments.Put(&state.ServiceDeployment{ServiceDeployment: types.ServiceDeployment{
				ServiceDeploymentArn: aws.String("d"), DeploymentConfiguration: c}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		v := statetest.OpenIn(t, dir).View()
		for _, kept := range []*types.DeploymentConfiguration{
			v.Services.Get("s").DeploymentConfiguration, v.ServiceDeployments.Get("d").DeploymentConfiguration,
		} {
			got, err := kept.LifecycleHooks[0].HookDetails.MarshalSmithyDocument()
			if err != nil || string(got) != text {
				t.Errorf("%s is kept as %s, %v", text, got, err)
			}
			if kept.LifecycleHooks[1].HookDetails != nil || *kept.LifecycleHooks[1].RoleArn != "role" {
				t.Errorf("%+v", kept.LifecycleHooks[1])
			}
		}
	}
}
