package plane

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNoMemberIsDropped: every member of what an operation is given, nested ones too, is read by code that answers calls, or it's in unread
// with the reason why not. A member that nothing reads has no effect, and nobody is told: refuse it by name, or give it one. A structure
// of which nothing is read, below a member that is, is refused or kept as a whole.
func TestNoMemberIsDropped(t *testing.T) {
	p := &Plane{}
	p.buildServices()
	s := readSources(t)
	excused := map[string]bool{}
	for _, group := range unread {
		for _, name := range strings.Fields(group.members) {
			excused[name] = false
		}
	}
	for _, api := range apis(p.services()) {
		for _, o := range api.Service.Operations() {
			s.unreadOf(o.In, nil, map[reflect.Type]bool{}, func(typ reflect.Type, member string) {
				for _, name := range []string{memberName(typ, member), memberName(typ, "*"), "*." + member} {
					if _, ok := excused[name]; ok {
						excused[name] = true
						return
					}
				}
				t.Errorf("%s: nothing reads %s", o.Name, memberName(typ, member))
				excused[memberName(typ, member)] = true // once is enough
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(excused)) {
		if !excused[name] {
			t.Errorf("%s is read, or there is no such member: unread needs no reason for it any more", name)
		}
	}
}

// memberName names a member by its type and the SDK's package: ec2.RunInstancesInput.KernelId.
func memberName(typ reflect.Type, member string) string {
	service := strings.TrimSuffix(typ.PkgPath(), "/types")
	return service[strings.LastIndex(service, "/")+1:] + "." + typ.Name() + "." + member
}

// sources is what the code that answers calls reads.
type sources struct {
	t       *testing.T
	exports map[string]string // files with what packages export, by import path
	read    map[string]bool   // members, by package, type and name
}

// unreadOf calls yield with each member below a type that nothing reads. What is below such a member is nobody's business.
func (s *sources) unreadOf(typ, of reflect.Type, seen map[reflect.Type]bool, yield func(reflect.Type, string)) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || !strings.HasPrefix(typ.PkgPath(), "github.com/aws/") || seen[typ] {
		return
	}
	seen[typ] = true
	isRead := func(f reflect.StructField) bool { return s.read[typ.PkgPath()+"."+typ.Name()+"."+f.Name] }
	fields := slices.DeleteFunc(slices.Collect(typ.Fields()), func(f reflect.StructField) bool {
		return !f.IsExported() || f.Name == "ResultMetadata"
	})
	if of != nil && !slices.ContainsFunc(fields, isRead) {
		return
	}
	for _, f := range fields {
		if isRead(f) {
			s.unreadOf(f.Type, typ, seen, yield)
		} else {
			yield(typ, f.Name)
		}
	}
}

// elsewhere are packages that answer no calls, so that what they read has no effect.
var elsewhere = []string{"node", "worker", "sidecar", "wire", "bootstrap", "sim", "console"}

// readSources finds the members that are read.
func readSources(t *testing.T) *sources {
	t.Helper()
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	list.Dir, list.Stderr = "..", os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	s := &sources{t: t, exports: map[string]string{}, read: map[string]bool{}}
	var ours []listedPackage
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		s.exports[p.ImportPath] = p.Export
		if name, ok := strings.CutPrefix(p.ImportPath, "github.com/pintle/pintle/internal/"); ok {
			if top, _, _ := strings.Cut(name, "/"); !slices.Contains(elsewhere, top) {
				ours = append(ours, p)
			}
		}
	}
	files := token.NewFileSet()
	from := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(s.exports[path]) })
	for _, p := range ours {
		s.readPackage(files, from, p)
	}
	return s
}

// listedPackage is a package as go list tells it.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// readPackage notes what a package reads.
func (s *sources) readPackage(set *token.FileSet, from types.Importer, p listedPackage) {
	s.t.Helper()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			s.t.Fatal(err)
		}
		files = append(files, f)
	}
	info := &types.Info{
		Selections: map[*ast.SelectorExpr]*types.Selection{},
		Types:      map[ast.Expr]types.TypeAndValue{},
		Uses:       map[*ast.Ident]types.Object{},
		Defs:       map[*ast.Ident]types.Object{},
	}
	if _, err := (&types.Config{Importer: from}).Check(p.ImportPath, set, files, info); err != nil {
		s.t.Fatal(err)
	}
	values := map[types.Object]ast.Expr{} // of variables
	for _, f := range files {
		written := map[ast.Expr]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) {
						values[info.Defs[name]] = n.Values[i]
					}
				}
			case *ast.AssignStmt:
				for _, to := range n.Lhs {
					written[to] = n.Tok == token.ASSIGN
				}
			case *ast.SelectorExpr:
				if sel := info.Selections[n]; sel != nil && sel.Kind() == types.FieldVal && !written[n] {
					s.selected(sel)
				}
			}
			return true
		})
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && refusesOthers(c) {
				s.refused(info, values, c)
			}
			return true
		})
	}
}

// selected notes the members that a selector reads: with embedded ones, several.
func (s *sources) selected(sel *types.Selection) {
	typ := sel.Recv()
	for _, i := range sel.Index() {
		if p, ok := typ.Underlying().(*types.Pointer); ok {
			typ = p.Elem()
		}
		of, ok := typ.Underlying().(*types.Struct)
		if !ok {
			return
		}
		s.note(typ, of.Field(i).Name())
		typ = of.Field(i).Type()
	}
}

func (s *sources) note(typ types.Type, member string) {
	if named, ok := types.Unalias(typ).(*types.Named); ok && named.Obj().Pkg() != nil {
		s.read[named.Obj().Pkg().Path()+"."+named.Obj().Name()+"."+member] = true
	}
}

// refusesOthers reports whether a call refuses all members that were given, but for those that it names.
func refusesOthers(c *ast.CallExpr) bool {
	name, ok := c.Fun.(*ast.Ident)
	return ok && slices.Contains([]string{"asked", "checkMembers", "checkVolumeMembers"}, name.Name) && len(c.Args) > 1
}

// refused notes the members of a call's first argument that it refuses as read. Those that it names must be read by somebody else.
func (s *sources) refused(info *types.Info, values map[types.Object]ast.Expr, c *ast.CallExpr) {
	var typ types.Type
	ast.Inspect(c.Args[0], func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok || typ != nil {
			return false
		}
		is := info.TypeOf(e)
		if p, ok := is.(*types.Pointer); ok {
			is = p.Elem()
		}
		if named, ok := is.(*types.Named); ok && strings.HasPrefix(named.Obj().Pkg().Path(), "github.com/aws/") {
			typ = named
		}
		return true
	})
	if typ == nil {
		return
	}
	known := map[string]bool{}
	name := func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			text, _ := strconv.Unquote(l.Value)
			known[text] = true
		}
		return true
	}
	for _, a := range c.Args[1:] {
		ast.Inspect(a, name)
		ast.Inspect(a, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && values[info.Uses[id]] != nil {
				ast.Inspect(values[info.Uses[id]], name)
			}
			return true
		})
	}
	for f := range typ.Underlying().(*types.Struct).Fields() {
		if !known[f.Name()] {
			s.note(typ, f.Name())
		}
	}
}

// unread are members that nothing reads, by the reason why that is right. *.Member is one of any type, and Type.* any of one type.
var unread = []struct{ because, members string }{
	{"the wire reads these: it checks bodies' sums", "*.ContentMD5 *.ChecksumAlgorithm"},
	{"whoever pays, it's this account", "*.RequestPayer"},
	{"Pintle hides nothing that these would show", `
		*.IncludeManagedResources *.Unmask ec2.DescribeImagesInput.IncludeDeprecated ec2.DescribeImagesInput.IncludeDisabled
		ec2.DescribeAvailabilityZonesInput.AllAvailabilityZones ec2.DescribeRegionsInput.AllRegions
		ec2.DescribeInstanceTypesInput.IncludeUnsupportedInRegion elasticloadbalancingv2.DescribeTargetHealthInput.Include`},
	{"there are none of what the call lists, however it narrows them down", `
		cloudwatchlogs.DescribeAccountPoliciesInput.AccountIdentifiers cloudwatchlogs.DescribeAccountPoliciesInput.PolicyName
		cloudwatchlogs.DescribeAccountPoliciesInput.PolicyType
		ec2.DescribeSnapshotsInput.OwnerIds ec2.DescribeSnapshotsInput.RestorableByUserIds ec2.DescribeVpcPeeringConnectionsInput.Filters
		iam.ListAccountAliasesInput.MaxItems iam.ListMFADevicesInput.MaxItems iam.ListSSHPublicKeysInput.MaxItems
		iam.ListServiceSpecificCredentialsInput.AllUsers iam.ListServiceSpecificCredentialsInput.MaxItems
		iam.ListServiceSpecificCredentialsInput.ServiceName iam.ListSigningCertificatesInput.MaxItems
		iam.ListVirtualMFADevicesInput.AssignmentStatus iam.ListVirtualMFADevicesInput.MaxItems`},
	{"the call is always refused", `
		acm.RequestCertificateInput.* servicediscovery.CreatePublicDnsNamespaceInput.*
		servicediscovery.UpdatePublicDnsNamespaceInput.Namespace servicediscovery.UpdatePublicDnsNamespaceInput.UpdaterRequestId
		secretsmanager.RotateSecretInput.ClientRequestToken secretsmanager.RotateSecretInput.ExternalSecretRotationMetadata
		secretsmanager.RotateSecretInput.ExternalSecretRotationRoleArn secretsmanager.RotateSecretInput.RotateImmediately
		secretsmanager.RotateSecretInput.RotationRules`},
	{"AWS ignores it, too", "elasticloadbalancingv2.Certificate.IsDefault cloudwatchlogs.FilterLogEventsInput.Interleaved cloudwatchlogs.PutLogEventsInput.SequenceToken"},
	{"no rule here is managed by a service, so there is nothing to force", "eventbridge.DeleteRuleInput.Force eventbridge.RemoveTargetsInput.Force"},
	{"nothing here traces events", "eventbridge.PutEventsRequestEntry.TraceHeader"},
	{"what the call does can be done again without harm", `
		scheduler.DeleteScheduleInput.ClientToken scheduler.DeleteScheduleGroupInput.ClientToken scheduler.UpdateScheduleInput.ClientToken`},
	{"it says how a thing is done that Pintle does in one way: at once, without a pause, or not at all", `
		autoscaling.CancelInstanceRefreshInput.WaitForTransitioningInstances autoscaling.CreateAutoScalingGroupInput.SkipZonalShiftValidation
		autoscaling.AttachTrafficSourcesInput.SkipZonalShiftValidation
		autoscaling.UpdateAutoScalingGroupInput.SkipZonalShiftValidation autoscaling.AvailabilityZoneImpairmentPolicy.ImpairedZoneHealthCheckBehavior
		cloudformation.CreateChangeSetInput.DisableValidation cloudformation.CreateStackInput.DisableValidation
		cloudformation.UpdateStackInput.DisableValidation ec2.DetachVolumeInput.Force ec2.TerminateInstancesInput.Force
		ec2.TerminateInstancesInput.SkipOsShutdown s3.PutBucketPolicyInput.ConfirmRemoveSelfBucketAccess
		secretsmanager.CreateSecretInput.ForceOverwriteReplicaSecret sts.AssumeRoleInput.MinimumSessionTokenSize`},
	{"the definition keeps and shows it, and is placed on no node, since none has App Mesh's proxies", "ecs.ProxyConfiguration.ContainerName ecs.ProxyConfiguration.Properties"},
	{"it's of a part that is refused: other members of it are read to see whether it was asked for", `
		eventbridge.LogConfig.IncludeDetail
		ec2.ReplaceRouteInput.LocalTarget ecs.DeploymentEarlySuccessCriteria.HealthyPercent
		ecs.DeploymentEarlySuccessCriteria.SourceServiceRevisionCleanup elasticloadbalancingv2.MutualAuthenticationAttributes.*
		elasticloadbalancingv2.ModifyRuleInput.ResetTransforms`},
	{"it's kept with the whole of what has it", `
		ecs.NetworkBinding.BindIP ecs.NetworkBinding.ContainerPortRange ecs.NetworkBinding.HostPortRange
		elasticloadbalancingv2.Action.Order s3.QueueConfiguration.Id`},
	{"it's kept and shown, and of no use without load balancers and Spot instances", `
		applicationautoscaling.StepScalingPolicyConfiguration.MetricAggregationType autoscaling.InstancesDistribution.SpotMaxPrice`},
	{"it's kept with what nodes tell of themselves", `
		ecs.DiscoverPollEndpointInput.Cluster ecs.DiscoverPollEndpointInput.ContainerInstance ecs.Resource.DoubleValue ecs.Resource.Type
		ecs.RegisterContainerInstanceInput.InstanceIdentityDocumentSignature ecs.VersionInfo.DockerVersion`},
	{"one bucket of an owner has one owner, and KMS and versions' MFA aren't there", `
		*.BucketKeyEnabled *.MFA s3.AccessControlPolicy.Owner s3.Grantee.DisplayName s3.Grantee.EmailAddress s3.Grantee.Type s3.Grantee.URI`},
	{"a launch template's data is copied whole, and what is looked at is the copy", "ec2.RequestLaunchTemplateData.*"},
	{"directory buckets have it", "s3.AbortMultipartUploadInput.IfMatchInitiatedTime"},
	{"no names of these are known to the wire, so nobody can send them", `
		*.ObjectLockEventHold *.ObjectLockEventHoldDurationDays *.ObjectLockEventHoldDurationYears`},
	{"no object has what these ask about", "*.OptionalObjectAttributes s3.CopyObjectInput.AnnotationDirective"},
	{"an upload's parts are shown to who may see the upload", `
		s3.ListPartsInput.SSECustomerAlgorithm s3.ListPartsInput.SSECustomerKey s3.ListPartsInput.SSECustomerKeyMD5`},
	{"all of a bucket's objects are encrypted, or none", "ecs.ExecuteCommandLogConfiguration.S3EncryptionEnabled"},
	{"metrics and logs have no entities: what comes with one is kept without it", `
		cloudwatch.EntityMetricData.Entity cloudwatch.PutMetricDataInput.StrictEntityValidation cloudwatchlogs.PutLogEventsInput.Entity`},
	{"a second call with it changes nothing more than the first", "ec2.ModifyLaunchTemplateInput.ClientToken"},
	{"AWS says it, and not the caller", "cloudformation.Parameter.ResolvedValue ec2.UserIdGroupPair.PeeringStatus"},
	{"it's AWS's own, for tasks that other services start", "ecs.RunTaskInput.ReferenceId ecs.StartTaskInput.ReferenceId"},
	{"the account is a member of no organization", "cloudformation.GetTemplateSummaryInput.CallAs"},
	{"a value of any type is compared as the condition's operator says", "iam.ContextEntry.ContextKeyType"},
}
