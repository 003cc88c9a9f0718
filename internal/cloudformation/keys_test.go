package cloudformation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	awsssm "github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
	"github.com/pintle/pintle/internal/vault/vaulttest"
)

// keyed has a user's key, and a parameter that its secret is put into.
const keyed = `
Resources:
  U: {Type: AWS::IAM::User}
  G: {Type: AWS::IAM::Group}
  H: {Type: AWS::IAM::Group}
  A: {Type: AWS::IAM::UserToGroupAddition, Properties: {GroupName: !Ref G, Users: [!Ref U]}}
  K: {Type: AWS::IAM::AccessKey, Properties: {UserName: !Ref U, Serial: 1, Status: Active}}
  P: {Type: AWS::SSM::Parameter, Properties: {Name: secret, Type: String, Value: v, Description: !Sub 'it is ${K.SecretAccessKey}'}}
Outputs:
  Key: {Value: !Ref K}
`

// keySecret returns the secret of a key as IAM has it.
func keySecret(t *testing.T, v *state.View, id string) string {
	t.Helper()
	secret, err := vaulttest.New(t, 7).Decrypt(v.AccessKeys.Get(id).Secret, vault.Purpose("iam", "access key", id))
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// putText returns what the stack has put into the parameter.
func (w *world) putText() string {
	return *call1[awsssm.DescribeParametersOutput](w, &awsssm.DescribeParametersInput{}).Parameters[0].Description
}

// TestKeyed: a key is made, changed in place, replaced by another serial number and deleted.
func TestKeyed(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", keyed)
	w.expect(types.StackStatusCreateComplete)
	v := w.store.View()
	ids := physicalIDs(v)
	if got := w.putText(); got != "it is "+keySecret(t, v, ids["K"]) {
		t.Errorf("the parameter is %q", got)
	}
	if out := find(v, w.onlyStack()).Outputs; *out[0].OutputValue != ids["K"] || !strings.HasPrefix(ids["K"], "AKIA") {
		t.Errorf("the output is %s, the key %s", *out[0].OutputValue, ids["K"])
	}
	w.become("s", strings.NewReplacer("Active", "Inactive", "GroupName: !Ref G", "GroupName: !Ref H").Replace(keyed))
	w.expect(types.StackStatusUpdateComplete)
	v = w.store.View()
	if !v.AccessKeys.Get(ids["K"]).Inactive || physicalIDs(v)["K"] != ids["K"] {
		t.Errorf("the keys are %+v", slices.Collect(v.AccessKeys.All()))
	}
	if u := v.Users.Get(state.NameKey(ids["U"])); len(u.Groups) != 1 || u.Groups[0] != ids["H"] {
		t.Errorf("the user is in %v", u.Groups)
	}
	w.become("s", strings.Replace(keyed, "Serial: 1", "Serial: 2", 1))
	w.expect(types.StackStatusUpdateComplete)
	v = w.store.View()
	next := physicalIDs(v)["K"]
	if next == ids["K"] || v.AccessKeys.Len() != 1 || w.putText() != "it is "+keySecret(t, v, next) {
		t.Errorf("the keys are %+v, the parameter is %s", slices.Collect(v.AccessKeys.All()), w.putText())
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if left := w.store.View().AccessKeys.Len() + w.store.View().Users.Len(); left != 0 {
		t.Errorf("%d are left", left)
	}
}

// TestKeyIsNotShown: a key's secret is neither in what the stack keeps nor in what it shows.
func TestKeyIsNotShown(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", keyed)
	w.become("s", strings.Replace(keyed, "Type: String,", "Type: String, AllowedPattern: x,", 1)) // fails
	w.become("s", strings.Replace(keyed, "'it is ${K.SecretAccessKey}'", "'it was ${K.SecretAccessKey}'", 1))
	w.expect(types.StackStatusUpdateComplete)
	call1[awsssm.PutParameterOutput](w, &awsssm.PutParameterInput{
		Name: aws.String("secret"), Value: aws.String("v"), Description: aws.String("other"), Overwrite: aws.Bool(true),
	})
	drift := strings.Join(w.drifts(), "\n")
	if !strings.Contains(drift, "/Description NOT_EQUAL it was **** -> ****") {
		t.Errorf("the drift is\n%s", drift)
	}
	v := w.store.View()
	secret := keySecret(t, v, physicalIDs(v)["K"])
	id := w.onlyStack()
	var kept []any
	for r := range v.ResourcesOf(id) {
		kept = append(kept, r)
	}
	for e := range v.EventsOf(id) {
		kept = append(kept, e)
	}
	for d := range v.ResourceDrifts.All() {
		kept = append(kept, d)
	}
	described, err := w.DescribeStackResources(t.Context(), &cloudformation.DescribeStackResourcesInput{StackName: &id})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(append(kept, described, drift, find(v, id)))
	if err != nil || strings.Contains(string(text), secret) || !strings.Contains(string(text), "it was ****") {
		at := max(strings.Index(string(text), secret), 0)
		t.Errorf("it's shown: %v: …%s…", err, text[max(at-200, 0):min(at+100, len(text))])
	}
}

// TestKeyIsOfItsStack: nothing but a stack makes keys: nobody else would be told the secret.
func TestKeyIsOfItsStack(t *testing.T) {
	c := newControl(newWorld(t, nil))
	kind := "AWS::IAM::AccessKey"
	_, err := c.CreateResource(t.Context(), &cloudcontrol.CreateResourceInput{TypeName: &kind, DesiredState: aws.String(`{"UserName": "u"}`)})
	if got := errorText(err); !strings.Contains(got, "UnsupportedActionException: Resource type AWS::IAM::AccessKey does not support CREATE action") {
		t.Errorf("got %s", got)
	}
}

// TestKeyLimit: a user has two keys at most, also during a replacement, and the third one's failure takes nothing away.
func TestKeyLimit(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", keyed)
	user := physicalIDs(w.store.View())["U"]
	other := call1[awsiam.CreateAccessKeyOutput](w, &awsiam.CreateAccessKeyInput{UserName: &user}).AccessKey
	w.become("s", strings.Replace(keyed, "Serial: 1", "Serial: 2", 1))
	w.expect(types.StackStatusUpdateRollbackComplete)
	v := w.store.View()
	if v.AccessKeys.Len() != 2 || v.AccessKeys.Get(*other.AccessKeyId) == nil || v.AccessKeys.Get(physicalIDs(v)["K"]) == nil {
		t.Errorf("the keys are %+v", slices.Collect(v.AccessKeys.All()))
	}
}

// TestKeyedKilled: a kill after any write makes no key twice, and the secret is still known.
func TestKeyedKilled(t *testing.T) {
	ends := func(w *world) string {
		v := w.store.View()
		lines := []string{fmt.Sprint(v.AccessKeys.Len(), " ", v.Users.Len(), " ", find(v, w.onlyStack()).StackStatus)}
		if id := physicalIDs(v)["K"]; id != "" && v.AccessKeys.Get(id) != nil {
			lines = append(lines, fmt.Sprint(v.AccessKeys.Get(id).Inactive, " ", w.putText() == "it is "+keySecret(t, v, id)))
		}
		return strings.Join(lines, "\n")
	}
	for what, change := range map[string]func(w *world){
		"created":  func(*world) {},
		"replaced": func(w *world) { w.become("s", strings.Replace(keyed, "Serial: 1", "Serial: 2", 1)) },
		"deleted":  func(w *world) { w.remove("s") },
	} {
		w := newWorld(t, nil)
		w.create("s", keyed)
		begun := len(w.wrote)
		if what == "created" {
			begun = 0
		}
		change(w)
		want := ends(w)
		for i, rows := range kills(w.wrote[begun:]) {
			again := newWorld(t, rows)
			if again.store.View().Stacks.Len() == 0 {
				continue // it was killed before anybody heard of the stack
			}
			again.settle()
			if got := ends(again); got != want {
				t.Errorf("%s, killed after write %d of %d:\n%s\nwithout:\n%s", what, i+1, len(w.wrote)-begun, got, want)
			}
		}
	}
}

// TestKeyedChangeSets: change sets show a key's secret nowhere, asked for values or not, whatever changes about it.
func TestKeyedChangeSets(t *testing.T) {
	w := newWorld(t, nil)
	text := strings.Replace(keyed, "  P: {", "  P: {Metadata: {said: !GetAtt K.SecretAccessKey}, ", 1)
	w.create("s", text)
	w.expect(types.StackStatusCreateComplete)
	v := w.store.View()
	secret := keySecret(t, v, physicalIDs(v)["K"])
	for i, next := range []string{
		strings.Replace(text, "it is", "it was", 1),
		strings.Replace(text, "Status: Active", "Status: Inactive", 1),
		strings.Replace(text, "said:", "told:", 1),
		strings.Replace(text, "Value: v,", "Value: !GetAtt K.SecretAccessKey,", 1),
	} {
		name := fmt.Sprint("c", i)
		in := &cloudformation.CreateChangeSetInput{StackName: aws.String("s"), ChangeSetName: &name, TemplateBody: &next, Capabilities: acknowledgedAll}
		if _, err := w.CreateChangeSet(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		for _, asked := range []bool{true, false} {
			out, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{StackName: in.StackName, ChangeSetName: &name, IncludePropertyValues: &asked})
			if err != nil || len(out.Changes) == 0 {
				t.Fatalf("%d: got %+v, %v", i, out, err)
			}
			shown, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(shown), secret) {
				t.Errorf("%d: the change set shows the secret: %s", i, shown)
			}
			if i == 0 && asked && !strings.Contains(string(shown), "it was ****") {
				t.Errorf("nothing is masked: %s", shown)
			}
		}
	}
}

// TestReviewedValuesAreEncrypted: the values of a stack that is no more than a change set are read with the key, too.
func TestReviewedValuesAreEncrypted(t *testing.T) {
	w := newWorld(t, nil)
	if w.store.View().HasEncrypted() {
		t.Fatal("something is encrypted before")
	}
	_, err := w.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), ChangeSetType: types.ChangeSetTypeCreate, TemplateBody: aws.String(sound),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !w.store.View().HasEncrypted() {
		t.Error("the change set's values aren't missed")
	}
}
