package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const importable = `
Resources:
  C: {Type: AWS::ECS::Cluster, DeletionPolicy: Retain, Properties: {ClusterName: mine}}
  P: {Type: AWS::SSM::Parameter, DeletionPolicy: Delete, Properties: {Name: loose, Type: String, Value: v}}
`

// loose makes the resources that can be imported.
func (w *world) loose() {
	w.t.Helper()
	call1[ecs.CreateClusterOutput](w, &ecs.CreateClusterInput{ClusterName: aws.String("mine")})
	in := &ssm.PutParameterInput{Name: aws.String("loose"), Value: aws.String("v"), Type: ssmtypes.ParameterTypeString}
	call1[ssm.PutParameterOutput](w, in)
}

// toImport names a cluster or a parameter.
func toImport(logical, kind, name, value string) types.ResourceToImport {
	return types.ResourceToImport{LogicalResourceId: &logical, ResourceType: &kind, ResourceIdentifier: map[string]string{name: value}}
}

var bothLoose = []types.ResourceToImport{
	toImport("C", "AWS::ECS::Cluster", "ClusterName", "mine"), toImport("P", "AWS::SSM::Parameter", "Name", "loose"),
}

// prepareImport makes a change set that imports resources.
func (w *world) prepareImport(text string, list []types.ResourceToImport, tags ...types.Tag) error {
	_, err := w.CreateChangeSet(w.t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), ChangeSetType: types.ChangeSetTypeImport,
		TemplateBody: &text, ResourcesToImport: list, Tags: tags, Capabilities: acknowledgedAll,
	})
	return err
}

// executes executes the change set c of the stack s.
func (w *world) executes() {
	w.t.Helper()
	in := &cloudformation.ExecuteChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c")}
	if _, err := w.ExecuteChangeSet(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// story lists the events of the only stack from old to new, but for those of reviews.
func (w *world) story() (lines []string) {
	for e := range w.store.View().EventsOf(w.onlyStack()) {
		if e.ResourceStatus != "REVIEW_IN_PROGRESS" {
			lines = append(lines, strings.TrimSpace(fmt.Sprint(*e.LogicalResourceId, " ", e.ResourceStatus, " ", aws.ToString(e.ResourceStatusReason))))
		}
	}
	slices.Reverse(lines)
	return lines
}

// TestImport: resources that are there become a stack's, with its tags, and are updated and deleted with it.
func TestImport(t *testing.T) {
	w := newWorld(t, nil)
	w.loose()
	one := "Resources:\n  C:" + strings.SplitN(strings.SplitN(importable, "  C:", 2)[1], "\n", 2)[0]
	if err := w.prepareImport(one, bothLoose[:1], types.Tag{Key: aws.String("k"), Value: aws.String("v")}); err != nil {
		t.Fatal(err)
	}
	set, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c")})
	if err != nil {
		t.Fatal(err)
	}
	c := set.Changes[0].ResourceChange
	if len(set.Changes) != 1 || c.Action != types.ChangeActionImport || *c.PhysicalResourceId != "mine" {
		t.Errorf("the change is %+v", c)
	}
	w.executes()
	w.expect(types.StackStatusImportComplete)
	want := []string{
		"s IMPORT_IN_PROGRESS User Initiated", "C IMPORT_IN_PROGRESS Resource import started.",
		"C IMPORT_COMPLETE Resource import completed.",
		"C UPDATE_IN_PROGRESS Apply stack-level tags to imported resource if applicable.", "C UPDATE_COMPLETE", "s IMPORT_COMPLETE",
	}
	if got := w.story(); !slices.Equal(got, want) {
		t.Errorf("the events are\n%s", strings.Join(got, "\n"))
	}
	if got := w.drifts(); !slices.Equal(got, []string{"C IN_SYNC"}) {
		t.Errorf("drift: %v", got)
	}
	if err := w.prepareImport(strings.TrimSpace(one)+importable[strings.Index(importable, "\n  P:"):], bothLoose[1:]); err != nil {
		t.Fatal(err)
	}
	w.executes()
	w.expect(types.StackStatusImportComplete)
	w.become("s", strings.Replace(importable, "Value: v", "Value: w", 1))
	w.expect(types.StackStatusUpdateComplete)
	if got := call1[ssm.GetParameterOutput](w, &ssm.GetParameterInput{Name: aws.String("loose")}); *got.Parameter.Value != "w" {
		t.Errorf("the parameter is %s", *got.Parameter.Value)
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if v := w.store.View(); v.Parameters.Len() != 0 || v.Clusters.Len() != 1 {
		t.Errorf("%d parameters and %d clusters are left", v.Parameters.Len(), v.Clusters.Len())
	}
}

// TestImportRolledBack: an import of which one resource isn't there leaves the others as they were.
func TestImportRolledBack(t *testing.T) {
	w := newWorld(t, nil)
	w.loose()
	list := []types.ResourceToImport{bothLoose[0], toImport("P", "AWS::SSM::Parameter", "Name", "nowhere")}
	if err := w.prepareImport(strings.Replace(importable, "loose", "nowhere", 1), list); err != nil {
		t.Fatal(err)
	}
	w.executes()
	w.expect(types.StackStatusImportRollbackComplete)
	v := w.store.View()
	if v.Parameters.Len() != 1 || v.Clusters.Len() != 1 || v.StackResources.Len() != 0 {
		t.Errorf("%d parameters, %d clusters and %d resources", v.Parameters.Len(), v.Clusters.Len(), v.StackResources.Len())
	}
	story := w.story()
	for _, want := range []string{
		`P IMPORT_FAILED Resource handler returned message: "Parameter nowhere not found." (HandlerErrorCode: NotFound)`,
		"s IMPORT_ROLLBACK_IN_PROGRESS The following resource(s) failed to import: [P].",
		"C IMPORT_ROLLBACK_COMPLETE", "s IMPORT_ROLLBACK_COMPLETE",
	} {
		if !slices.Contains(story, want) {
			t.Errorf("there is no %q in\n%s", want, strings.Join(story, "\n"))
		}
	}
	w.become("s", "Resources: {X: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: x}}}")
	w.expect(types.StackStatusUpdateComplete)
}

// TestImportRefused: what can't be imported is refused before anything happens.
func TestImportRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.loose()
	handle := "Resources: {H: {Type: AWS::CloudFormation::WaitConditionHandle, DeletionPolicy: Delete}}"
	for _, c := range []struct {
		text string
		list []types.ResourceToImport
		want string
	}{
		{importable, nil, "ResourcesToImport must be specified for change sets of type IMPORT"},
		{strings.ReplaceAll(importable, "DeletionPolicy: Retain, ", ""), bothLoose, "The following resources to import [C] must have DeletionPolicy attribute specified in the template."},
		{importable, bothLoose[:1], "Resources [P] is missing from ResourceToImport list"},
		{importable + "Outputs: {O: {Value: o}}", bothLoose, "As part of the import operation, you cannot modify or add [Outputs]"},
		{importable, []types.ResourceToImport{toImport("X", "AWS::ECS::Cluster", "ClusterName", "mine")}, "Resource X to import is not in the template"},
		{importable, []types.ResourceToImport{toImport("C", "AWS::ECS::Cluster", "Arn", "mine")}, "Resource C to import must be identified by [ClusterName]"},
		{importable, []types.ResourceToImport{toImport("C", "AWS::SQS::Queue", "QueueUrl", "mine")}, "Resource C to import is of type AWS::ECS::Cluster in the template, not AWS::SQS::Queue"},
		{handle, []types.ResourceToImport{toImport("H", "AWS::CloudFormation::WaitConditionHandle", "H", "h")}, "ResourceTypes [AWS::CloudFormation::WaitConditionHandle] are not supported for Import"},
		{importable, append(slices.Clone(bothLoose), bothLoose[0]), "Resource C is in ResourcesToImport twice"},
		{importable + "  D: {Type: AWS::ECS::Cluster, DeletionPolicy: Retain}\n", append(slices.Clone(bothLoose), toImport("D", "AWS::ECS::Cluster", "ClusterName", "mine")), "Resources C and D to import are the same"},
	} {
		check(t, c.want, w.prepareImport(c.text, c.list), c.want)
	}
	if n := w.store.View().Stacks.Len(); n != 0 {
		t.Fatalf("there are %d stacks", n)
	}
	w.create("s", "Resources: {Q: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: q}}}")
	q := "  Q: {Type: AWS::SSM::Parameter, DeletionPolicy: Retain, Properties: {Type: String, Value: r}}\n"
	want := "You have modified resources [Q] in your template that are not being imported. Update, create or delete operations cannot be executed during import operations."
	check(t, want, w.prepareImport(importable+q, bothLoose), want)
	id := physicalIDs(w.store.View())["Q"]
	text := "Resources:\n" + strings.Replace(q, "Value: r", "Value: q", 1) + "  R: {Type: AWS::SSM::Parameter, DeletionPolicy: Retain, Properties: {Type: String, Value: q}}\n"
	want = "Resource " + id + " already exists in stack " + w.onlyStack()
	check(t, want, w.prepareImport(text, []types.ResourceToImport{toImport("R", "AWS::SSM::Parameter", "Name", id)}), want)
	_, err := w.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("d"), TemplateBody: &text, ResourcesToImport: bothLoose,
	})
	check(t, "an update", err, "ResourcesToImport can only be specified for change sets of type IMPORT")
}

// TestImportTagsNothingElse: what can't change its tags is imported as it is, and not replaced for them.
func TestImportTagsNothingElse(t *testing.T) {
	w := newWorld(t, nil)
	call1[ec2.CreatePlacementGroupOutput](w, &ec2.CreatePlacementGroupInput{GroupName: aws.String("g"), Strategy: "spread"})
	text := "Resources: {G: {Type: AWS::EC2::PlacementGroup, DeletionPolicy: Delete, Properties: {Strategy: spread}}}"
	list := []types.ResourceToImport{toImport("G", "AWS::EC2::PlacementGroup", "GroupName", "g")}
	if err := w.prepareImport(text, list, types.Tag{Key: aws.String("k"), Value: aws.String("v")}); err != nil {
		t.Fatal(err)
	}
	w.executes()
	w.expect(types.StackStatusImportComplete)
	v := w.store.View()
	if v.PlacementGroups.Len() != 1 || physicalIDs(v)["G"] != "g" {
		t.Errorf("there are %d groups, and the stack has %s", v.PlacementGroups.Len(), physicalIDs(v)["G"])
	}
}

// TestImportSummary: what can be imported is listed with what identifies it.
func TestImportSummary(t *testing.T) {
	w := newWorld(t, nil)
	text := importable + "  H: {Type: AWS::CloudFormation::WaitConditionHandle}\n  D: {Type: AWS::ECS::Cluster}\n"
	out, err := w.GetTemplateSummary(t.Context(), &cloudformation.GetTemplateSummaryInput{TemplateBody: &text})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, s := range out.ResourceIdentifierSummaries {
		got[*s.ResourceType] = fmt.Sprint(s.LogicalResourceIds, s.ResourceIdentifiers)
	}
	if len(got) != 2 || got["AWS::ECS::Cluster"] != "[C D] [ClusterName]" || got["AWS::SSM::Parameter"] != "[P] [Name]" {
		t.Errorf("got %v", got)
	}
}

// TestImportKilledAtEachWrite: an import that is killed ends as it would have without, and so does one that is rolled back.
func TestImportKilledAtEachWrite(t *testing.T) {
	missing := []types.ResourceToImport{bothLoose[0], toImport("P", "AWS::SSM::Parameter", "Name", "nowhere")}
	for _, c := range []struct {
		text string
		list []types.ResourceToImport
		want types.StackStatus
	}{
		{importable, bothLoose, types.StackStatusImportComplete},
		{strings.Replace(importable, "loose", "nowhere", 1), missing, types.StackStatusImportRollbackComplete},
	} {
		w := newWorld(t, nil)
		w.loose()
		if err := w.prepareImport(c.text, c.list, types.Tag{Key: aws.String("k"), Value: aws.String("v")}); err != nil {
			t.Fatal(err)
		}
		from := len(w.wrote)
		w.executes()
		w.expect(c.want)
		want := w.summary()
		tried := 0
		for i, rows := range kills(w.wrote[from:]) {
			again := newWorld(t, rows)
			if !again.goesOn(again.onlyStack(), c.want) {
				continue
			}
			tried++
			again.settle()
			if got := again.summary(); got != want {
				t.Fatalf("killed after write %d of %d:\n%s\n\nwithout:\n%s", i+1, len(w.wrote)-from, got, want)
			}
		}
		if tried < 5 / *killsEvery {
			t.Errorf("only %d kills were tried", tried)
		}
	}
}

// prepareExisting makes a change set that imports what is there already.
func (w *world) prepareExisting(kind types.ChangeSetType, text string) *cloudformation.DescribeChangeSetOutput {
	w.t.Helper()
	_, err := w.CreateChangeSet(w.t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), ChangeSetType: kind, TemplateBody: &text,
		Capabilities: acknowledgedAll, ImportExistingResources: aws.Bool(true), IncludeNestedStacks: aws.Bool(true),
		Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.changeSetOf("c")
}

// existing has resources that are there, one that isn't, and one that has no name of its own.
const existing = `
Resources:
  C: {Type: AWS::ECS::Cluster, DeletionPolicy: Retain, Properties: {ClusterName: mine}}
  P: {Type: AWS::SSM::Parameter, DeletionPolicy: RetainExceptOnCreate, Properties: {Name: loose, Type: String, Value: v}}
  N: {Type: AWS::SSM::Parameter, DeletionPolicy: Delete, Properties: {Name: new, Type: String, Value: !Ref C}}
  G: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !GetAtt P.Value}}
`

// TestImportExisting: a change set takes over what is there under the template's names, and makes the rest.
func TestImportExisting(t *testing.T) {
	w := newWorld(t, nil)
	w.loose()
	set := w.prepareExisting(types.ChangeSetTypeCreate, existing)
	if got := w.shownChanges(set); got != "Import C, Add G, Add N, Import P" || !*set.ImportExistingResources ||
		aws.ToString(set.Changes[0].ResourceChange.PhysicalResourceId) != "mine" {
		t.Fatalf("it changes %s: %s", got, aws.ToString(set.StatusReason))
	}
	w.executes()
	w.expect(types.StackStatusCreateComplete)
	story := w.story()
	for _, want := range []string{"C IMPORT_IN_PROGRESS Resource import started.", "P IMPORT_COMPLETE Resource import completed.", "N CREATE_COMPLETE"} {
		if !slices.Contains(story, want) {
			t.Errorf("there is no %q in\n%s", want, strings.Join(story, "\n"))
		}
	}
	if got := w.parameters(); got != "v, v, mine" {
		t.Errorf("there are %s", got)
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if got := w.parameters(); got != "v" || w.store.View().Clusters.Len() != 1 {
		t.Errorf("%s and %d clusters are left", got, w.store.View().Clusters.Len())
	}
}

// TestImportExistingInUpdate: an update imports, too, and also in nested stacks. What its rollback lets go of stays.
func TestImportExistingInUpdate(t *testing.T) {
	w := newWorld(t, nil)
	w.loose()
	w.texts["b one.yml"] = "Resources: {P: {Type: AWS::SSM::Parameter, DeletionPolicy: Retain, Properties: {Name: loose, Type: String, Value: v}}}"
	const own = "Resources:\n  O: {Type: AWS::ECS::Cluster}\n"
	const more = own + "  C: {Type: AWS::ECS::Cluster, DeletionPolicy: Retain, Properties: {ClusterName: mine}}\n" +
		"  N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: 'https://b.s3.amazonaws.com/one.yml'}}\n"
	w.create("s", own)
	w.take("taken")
	bad := more + "  X: {Type: AWS::SSM::Parameter, DependsOn: [C, N], Properties: {Type: String, Value: x, AllowedPattern: y}}\n"
	if got := w.shownChanges(w.prepareExisting(types.ChangeSetTypeUpdate, bad)); got != "Import C, Add N [Import P], Modify O, Add X" {
		t.Errorf("it changes %s", got)
	}
	w.executes()
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := w.parameters(); got != "v, mine" || w.store.View().Clusters.Len() != 2 {
		t.Errorf("%s and %d clusters are left: %s", got, w.store.View().Clusters.Len(), w.reasons())
	}
	w.prepareExisting(types.ChangeSetTypeUpdate, more)
	w.executes()
	w.expect(types.StackStatusUpdateComplete)
	if got := physicalIDs(w.store.View()); got["C"] != "mine" || got["P"] != "loose" {
		t.Errorf("the stacks have %v", got)
	}
}

// executesKeeping executes the change set c of the stack s so that the stack stays as a failure leaves it.
func (w *world) executesKeeping() {
	w.t.Helper()
	in := &cloudformation.ExecuteChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c"), DisableRollback: aws.Bool(true)}
	if _, err := w.ExecuteChangeSet(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// onlyOwn has a cluster, and importing besides it a parameter that can be imported.
const (
	onlyOwn   = "Resources:\n  O: {Type: AWS::ECS::Cluster}\n"
	importing = onlyOwn + "  P: {Type: AWS::SSM::Parameter, DeletionPolicy: Retain, Properties: {Name: loose, Type: String, Value: v}}\n"
)

// failImport has a stack fail to import a parameter that is deleted once it was planned.
func (w *world) failImport() {
	w.t.Helper()
	w.loose()
	w.create("s", onlyOwn)
	w.prepareExisting(types.ChangeSetTypeUpdate, importing)
	statetest.Update(w.t, w.store, func(tx *state.Tx) { tx.Parameters.Delete("loose") })
	w.executesKeeping()
	w.expect(types.StackStatusUpdateFailed)
}

// TestImportThatFailedGoesOn: what a failed import didn't take over is made or imported by the next update, and never deleted.
func TestImportThatFailedGoesOn(t *testing.T) {
	changed := strings.Replace(importing, "Value: v", "Value: w", 1)
	for name, c := range map[string]struct {
		isBack bool // whether what was to be imported is there again
		then   func(*world)
		status types.StackStatus
		want   string
	}{
		"made":        {false, func(w *world) { w.becomeKeeping(changed) }, types.StackStatusUpdateComplete, "w"},
		"in the way":  {true, func(w *world) { w.becomeKeeping(changed) }, types.StackStatusUpdateFailed, "mine"},
		"left out":    {true, func(w *world) { w.becomeKeeping(onlyOwn) }, types.StackStatusUpdateComplete, "mine"},
		"rolled back": {true, (*world).rollBack, types.StackStatusUpdateRollbackComplete, "mine"},
		"deleted":     {true, func(w *world) { w.remove("s") }, types.StackStatusDeleteComplete, "mine"},
		"imported": {true, func(w *world) {
			if got := w.shownChanges(w.prepareExisting(types.ChangeSetTypeUpdate, importing)); got != "Import P" {
				w.t.Errorf("it changes %s", got)
			}
			w.executesKeeping()
		}, types.StackStatusUpdateComplete, "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.failImport()
			if c.isBack {
				w.take("loose")
			}
			c.then(w)
			w.expect(c.status)
			if got := w.parameters(); got != c.want {
				t.Errorf("there are %s: %s", got, w.reasons())
			}
		})
	}
}

// TestNoDriftOfWhatWasNotImported: what a stack failed to import isn't the stack's, so it can't drift.
func TestNoDriftOfWhatWasNotImported(t *testing.T) {
	w := newWorld(t, nil)
	w.failImport()
	w.take("loose")
	began, err := w.DetectStackDrift(t.Context(), &cloudformation.DetectStackDriftInput{StackName: aws.String("s")})
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.DescribeStackDriftDetectionStatus(t.Context(), &cloudformation.DescribeStackDriftDetectionStatusInput{
		StackDriftDetectionId: began.StackDriftDetectionId,
	})
	if err != nil || out.StackDriftStatus != types.StackDriftStatusInSync || out.DetectionStatus != types.StackDriftDetectionStatusDetectionComplete {
		t.Errorf("got %+v %v", out, err)
	}
	if _, err := w.DetectStackResourceDrift(t.Context(), &cloudformation.DetectStackResourceDriftInput{
		StackName: aws.String("s"), LogicalResourceId: aws.String("P"),
	}); err == nil {
		t.Error("drift of a resource that the stack never had")
	}
}

// TestImportedIsNotMadeInVain: a rollback lets go of what a failed attempt has taken over, also if a later one has changed it.
func TestImportedIsNotMadeInVain(t *testing.T) {
	const bad = onlyOwn + "  P: {Type: AWS::SSM::Parameter, DeletionPolicy: RetainExceptOnCreate, Properties: {Name: loose, Type: String, Value: v}}\n" +
		"  X: {Type: AWS::SSM::Parameter, DependsOn: P, Properties: {Type: String, Value: x, AllowedPattern: y}}\n"
	w := newWorld(t, nil)
	w.loose()
	w.create("s", onlyOwn)
	w.prepareExisting(types.ChangeSetTypeUpdate, bad)
	w.executesKeeping()
	w.becomeKeeping(strings.Replace(bad, "Value: v", "Value: w", 1))
	w.expect(types.StackStatusUpdateFailed)
	if got := w.parameters(); got != "w" {
		t.Errorf("there are %s: %s", got, w.reasons())
	}
	w.rollBack()
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := w.parameters(); got != "w" {
		t.Errorf("there are %s after the rollback", got)
	}
}

// TestImportExistingConflicts: what would not be kept isn't imported, nor what another stack has.
func TestImportExistingConflicts(t *testing.T) {
	w := newWorld(t, nil)
	w.loose()
	set := w.prepareExisting(types.ChangeSetTypeCreate, strings.NewReplacer("Retain,", "Delete,", "DeletionPolicy: RetainExceptOnCreate, ", "").Replace(existing))
	want := "CloudFormation is attempting to import some resources because they already exist in your account. The resources must have the " +
		"DeletionPolicy attribute set to 'Retain' or 'RetainExceptOnCreate' in the template for successful import. " +
		"The affected resources are C ({ClusterName=mine}), P ({Name=loose})"
	if set.Status != types.ChangeSetStatusFailed || *set.StatusReason != want {
		t.Errorf("got %s: %s", set.Status, aws.ToString(set.StatusReason))
	}
	w.remove("s")
	w.create("holder", "Resources: {X: {Type: AWS::SSM::Parameter, Properties: {Name: new, Type: String, Value: x}}}")
	set = w.prepareExisting(types.ChangeSetTypeCreate, existing)
	if want := "Resource new already exists in stack " + *find(w.store.View(), "holder").StackId; set.Status != types.ChangeSetStatusFailed || *set.StatusReason != want {
		t.Errorf("got %s: %s", set.Status, aws.ToString(set.StatusReason))
	}
	_, err := w.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("t"), ChangeSetName: aws.String("c"), ChangeSetType: types.ChangeSetTypeImport, TemplateBody: aws.String(importable),
		ResourcesToImport: bothLoose, ImportExistingResources: aws.Bool(true),
	})
	check(t, "both", err, "ImportExistingResources cannot be specified for change sets of type IMPORT, whose resources ResourcesToImport lists")
}

// TestImportExistingKilledAtEachWrite: a creation that imports ends as it would have, whenever it's killed.
func TestImportExistingKilledAtEachWrite(t *testing.T) {
	bad := existing + "  X: {Type: AWS::SSM::Parameter, DependsOn: [G, N], Properties: {Name: taken, Type: String, Value: x}}\n"
	for text, status := range map[string]types.StackStatus{
		existing: types.StackStatusCreateComplete, bad: types.StackStatusRollbackComplete,
	} {
		w := newWorld(t, nil)
		w.loose()
		w.prepareExisting(types.ChangeSetTypeCreate, text)
		w.take("taken") // after it was planned
		from := len(w.wrote)
		w.executes()
		w.expect(status)
		want := w.summary()
		tried := 0
		for i, rows := range kills(w.wrote[from:]) {
			again := newWorld(t, rows)
			if s := find(again.store.View(), again.onlyStack()); s.InReview() || !s.Busy() {
				continue
			}
			tried++
			again.settle()
			if got := again.summary(); got != want {
				t.Fatalf("killed after write %d of %d:\n%s\n\nwithout:\n%s", i+1, len(w.wrote)-from, got, want)
			}
		}
		if tried < 10 / *killsEvery {
			t.Errorf("only %d kills were tried", tried)
		}
	}
}
