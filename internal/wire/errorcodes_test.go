package wire

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// beyond are codes that a service returns on AWS though its model lacks them, each with its reason.
var beyond = map[string]map[string]string{
	"autoscaling": {
		"ValidationError": "CommonErrors in the API reference",
	},
	"elbv2":          {"ValidationError": "CommonErrors in the API reference"},
	"cloudformation": {"ValidationError": "CommonErrors in the API reference"},
	"secretsmanager": {"ValidationException": "CommonErrors in the API reference"},
	"cloudwatch":     {"ValidationException": "seen on AWS, with ValidationError as its code in Query"},
	"sqs": {
		"InvalidParameterValueException":    "seen on AWS, with InvalidParameterValue as its code in Query",
		"MissingRequiredParameterException": "seen on AWS, with MissingParameter as its code in Query",
	},
	"iam": {
		"AccessDenied": "seen on AWS", "ValidationError": "CommonErrors in the API reference",
		"InvalidParameterValue": "seen on AWS, of the session tags of AssumeRole",
	},
	"sts": {"AccessDenied": "seen on AWS", "ValidationError": "CommonErrors in the API reference"},
	"s3": { // the model has few; these are from "List of error codes" in the API reference
		"Error":                                   "no error, but a member of answers",
		"IllegalLocationConstraintException":      "seen on AWS",
		"InvalidBucketAclWithObjectOwnership":     "seen on AWS",
		"InvalidBucketOwnerAWSAccountID":          "seen on AWS",
		"AccessControlListNotSupported":           "error codes",
		"AccessForbidden":                         "seen on AWS, in answers to preflights",
		"BadDigest":                               "error codes",
		"BadRequest":                              "error codes",
		"BucketNotEmpty":                          "error codes",
		"ConditionalRequestConflict":              "error codes",
		"EntityTooSmall":                          "error codes",
		"IllegalVersioningConfigurationException": "error codes",
		"InternalError":                           "error codes",
		"InvalidArgument":                         "error codes",
		"InvalidBucketName":                       "error codes",
		"InvalidDigest":                           "error codes",
		"InvalidEncryptionAlgorithmError":         "error codes",
		"InvalidLocationConstraint":               "error codes",
		"InvalidPart":                             "error codes",
		"InvalidPartNumber":                       "error codes",
		"InvalidPartOrder":                        "error codes",
		"InvalidRange":                            "error codes",
		"InvalidStorageClass":                     "error codes",
		"InvalidTag":                              "error codes",
		"InvalidURI":                              "error codes",
		"KeyTooLongError":                         "error codes",
		"MalformedPolicy":                         "error codes",
		"MalformedXML":                            "error codes",
		"MetadataTooLarge":                        "error codes",
		"MethodNotAllowed":                        "error codes",
		"MissingSecurityHeader":                   "error codes",
		"NoSuchBucketPolicy":                      "error codes",
		"NoSuchCORSConfiguration":                 "error codes",
		"NoSuchLifecycleConfiguration":            "error codes",
		"NoSuchPublicAccessBlockConfiguration":    "error codes",
		"NoSuchTagSet":                            "error codes",
		"NoSuchVersion":                           "error codes",
		"NotImplemented":                          "error codes",
		"NotModified":                             "error codes",
		"OwnershipControlsNotFoundError":          "error codes",
		"PolicyTooLarge":                          "error codes",
		"PreconditionFailed":                      "error codes",
		"EntityTooLarge":                          "error codes",
	},
	"ec2": { // the model has no errors at all; these are from "Error codes for the Amazon EC2 API"
		"DryRunOperation":                                  "client errors",
		"SsmInvalidParameter":                              "seen on AWS",
		"FilterLimitExceeded":                              "client errors",
		"InsufficientInstanceCapacity":                     "server errors",
		"InvalidAMIID.Malformed":                           "client errors",
		"InvalidAMIID.NotFound":                            "client errors",
		"InvalidID":                                        "client errors",
		"InvalidInstanceID.Malformed":                      "client errors",
		"InvalidInstanceID.NotFound":                       "client errors",
		"InvalidInstanceType":                              "client errors",
		"InvalidLaunchTemplateId.NotFound":                 "client errors",
		"InvalidLaunchTemplateId.VersionNotFound":          "client errors",
		"InvalidLaunchTemplateName.AlreadyExistsException": "client errors",
		"InvalidLaunchTemplateName.MalformedException":     "client errors",
		"InvalidLaunchTemplateName.NotFoundException":      "client errors",
		"InvalidParameterCombination":                      "common client errors",
		"InvalidParameterValue":                            "common client errors",
		"InvalidUserData.Malformed":                        "client errors",
		"MissingParameter":                                 "common client errors",
		"ResponseError":                                    "no error, but a member of answers",
		"TagLimitExceeded":                                 "client errors",
		"UnsupportedOperation":                             "common client errors",
		"VersionLimitExceeded":                             "client errors",
		"InvalidNextToken":                                 "client errors",
		"AuthFailure":                                      "common client errors",
		"CannotDelete":                                     "client errors",
		"DefaultSubnetAlreadyExistsInAvailabilityZone":     "client errors",
		"DefaultVpcAlreadyExists":                          "client errors",
		"DefaultVpcDoesNotExist":                           "client errors",
		"DependencyViolation":                              "client errors",
		"Gateway.NotAttached":                              "client errors",
		"IncorrectState":                                   "client errors",
		"InvalidAttachment.NotFound":                       "client errors",
		"InvalidParameterDependency":                       "client errors",
		"InvalidSnapshot.NotFound":                         "client errors",
		"InvalidVolume.NotFound":                           "client errors",
		"InvalidVolume.ZoneMismatch":                       "client errors",
		"InvalidVolumeModification.NotFound":               "client errors",
		"InvalidZone.NotFound":                             "client errors",
		"VolumeInUse":                                      "client errors",
		"IdempotentParameterMismatch":                      "client errors",
		"InsufficientFreeAddressesInSubnet":                "client errors",
		"InvalidAddress.NotFound":                          "client errors",
		"InvalidAllocationID.NotFound":                     "client errors",
		"InvalidAssociationID.NotFound":                    "client errors",
		"InvalidDhcpOptionID.NotFound":                     "client errors",
		"InvalidEgressOnlyInternetGatewayId.NotFound":      "client errors",
		"InvalidGatewayID.NotFound":                        "client errors",
		"InvalidGroup.Duplicate":                           "client errors",
		"InvalidGroup.NotFound":                            "client errors",
		"InvalidIPAddress.InUse":                           "client errors",
		"InvalidInternetGatewayID.NotFound":                "client errors",
		"InvalidKey.Format":                                "client errors",
		"InvalidKeyPair.Duplicate":                         "client errors",
		"InvalidKeyPair.NotFound":                          "client errors",
		"InvalidNatGatewayID.NotFound":                     "client errors",
		"InvalidNetworkAclEntry.NotFound":                  "client errors",
		"InvalidNetworkAclID.NotFound":                     "client errors",
		"InvalidNetworkInterfaceID.NotFound":               "client errors",
		"InvalidParameter":                                 "client errors",
		"InvalidPermission.Duplicate":                      "client errors",
		"InvalidPermission.NotFound":                       "client errors",
		"InvalidPlacementGroup.Duplicate":                  "client errors",
		"InvalidPlacementGroup.Unknown":                    "client errors",
		"InvalidPolicyDocument":                            "client errors",
		"InvalidPrefixListID.NotFound":                     "client errors",
		"InvalidRoute.NotFound":                            "client errors",
		"InvalidRouteTableID.NotFound":                     "client errors",
		"InvalidSecurityGroupRuleId.NotFound":              "client errors",
		"InvalidServiceName":                               "client errors",
		"InvalidSubnet.Conflict":                           "client errors",
		"InvalidSubnet.Range":                              "client errors",
		"InvalidSubnetID.NotFound":                         "client errors",
		"InvalidVpc.Range":                                 "client errors",
		"InvalidVpcCidrBlockAssociationID.NotFound":        "client errors",
		"InvalidVpcEndpointId.NotFound":                    "client errors",
		"InvalidVpcID.NotFound":                            "client errors",
		"InvalidVpcPeeringConnectionID.NotFound":           "client errors",
		"InvalidVpnGatewayID.NotFound":                     "client errors",
		"NatGatewayNotFound":                               "client errors",
		"NetworkAclEntryAlreadyExists":                     "client errors",
		"OperationNotPermitted":                            "client errors",
		"Resource.AlreadyAssociated":                       "client errors",
		"RouteAlreadyExists":                               "client errors",
		"SecurityGroupsPerInterfaceLimitExceeded":          "client errors",
		"UnsuccessfulItemError":                            "no error, but a member of answers",
		"VPCIdNotSpecified":                                "client errors",
	},
}

// TestErrorCodesAreAWSs: every error code in the code of a service is in its model, or among those that AWS returns besides.
func TestErrorCodesAreAWSs(t *testing.T) {
	for _, c := range []struct {
		folder, botocore string
		constraint       string // the code of violated constraints
		least            int
	}{
		{"../appautoscaling", "application-autoscaling", ApplicationAutoScaling(nil).Constraints.Code, 5},
		{"../autoscaling", "autoscaling", AutoScaling(nil).Constraints.Code, 8},
		{"../cloudformation", "cloudformation", CloudFormation(nil).Constraints.Code, 1},
		{"../cloudwatch", "cloudwatch", CloudWatch(nil).Constraints.Code, 7},
		{"../ec2", "ec2", EC2(nil).Constraints.Code, 20},
		{"../ecr", "ecr", ECR(nil).Constraints.Code, 8},
		{"../ecs", "ecs", ECS(nil).Constraints.Code, 8},
		{"../acm", "acm", "ValidationException", 6},
		{"../efs", "efs", "BadRequest", 6},
		{"../lambda", "lambda", "", 5}, // it tells violated constraints by a ValidationException, which its model hasn't
		{"../elb", "elbv2", "ValidationError", 20},
		{"../iam", "iam", IAM(nil).Constraints.Code, 1},
		{"../iam/sts", "sts", STS(nil).Constraints.Code, 0},
		{"../logs", "logs", Logs(nil).Constraints.Code, 3},
		{"../s3", "s3", S3(nil).Constraints.Code, 35},
		{"../secretsmanager", "secretsmanager", SecretsManager(nil).Constraints.Code, 8},
		{"../ssm", "ssm", SSM(nil).Constraints.Code, 10},
		{"../sqs", "sqs", SQS(nil).Constraints.Code, 18},
	} {
		t.Run(c.botocore, func(t *testing.T) {
			known := modelCodes(botocore(t, c.botocore))
			found := codesIn(t, c.folder)
			if len(found) < c.least {
				t.Errorf("only %d codes were found: %v", len(found), found)
			}
			if c.constraint != "" {
				found = append(found, c.constraint)
			}
			for _, code := range found {
				if !slices.Contains(known, code) && beyond[c.botocore][code] == "" {
					t.Errorf("%s is no error of the service's", code)
				}
			}
			for code := range beyond[c.botocore] {
				if slices.Contains(known, code) || !slices.Contains(found, code) {
					t.Errorf("%s need not be listed", code)
				}
			}
		})
	}
}

// TestOwnErrorCodes: wire itself refuses with codes that AWS's services have in common, or with one of its own if it must.
func TestOwnErrorCodes(t *testing.T) {
	reasons := map[string]string{
		"MalformedQueryString":                "the common errors of Query APIs",
		"MissingAction":                       "the common errors of Query APIs",
		"MissingAuthenticationTokenException": "the common errors of JSON APIs",
		"NotImplementedException":             "Pintle's own: AWS implements everything",
		"RequestEntityTooLargeException":      "seen on AWS",
		"SerializationException":              "seen on AWS",
		"UnknownOperationException":           "seen on AWS",
		"UnsupportedMediaTypeException":       "seen on AWS",
	}
	for _, code := range codesIn(t, ".") {
		if reasons[code] == "" {
			t.Errorf("wire refuses with %s", code)
		}
	}
}

// modelCodes returns the names and codes of a model's errors.
func modelCodes(m *serviceModel) (codes []string) {
	for name, shape := range m.Shapes {
		if shape.Exception {
			codes = append(codes, name, shape.Error.Code)
		}
	}
	return codes
}

// errorStruct matches the names of the SDK's structs for errors.
var errorStruct = regexp.MustCompile(`(Exception|Fault|Error|NextToken)$`)

// codesIn returns the error codes in a folder's code: the SDK's error structs, and what refusals are made with.
func codesIn(t *testing.T, folder string) (codes []string) {
	t.Helper()
	for _, p := range parseFolder(t, folder) {
		constants := stringConstants(p)
		ast.Inspect(p, func(n ast.Node) bool {
			codes = append(codes, codeAt(n, folder, constants))
			return true
		})
	}
	slices.Sort(codes)
	return slices.DeleteFunc(slices.Compact(codes), func(code string) bool { return code == "" })
}

// parseFolder parses a folder's code without its tests and what is generated.
func parseFolder(t *testing.T, folder string) map[string]*ast.Package {
	t.Helper()
	packages, err := parser.ParseDir(token.NewFileSet(), folder, func(f fs.FileInfo) bool {
		return !strings.HasSuffix(f.Name(), "_test.go") && !strings.HasSuffix(f.Name(), "_gen.go")
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// codeAt returns the error code that a piece of code names, or "".
func codeAt(n ast.Node, folder string, constants map[string]string) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		if at := codeArgument(n.Fun, folder); at >= 0 && at < len(n.Args) {
			return textOf(n.Args[at], constants)
		}
	case *ast.KeyValueExpr:
		if nameOf(n.Key) == "code" { // of S3's errors
			return textOf(n.Value, constants)
		}
	case *ast.CompositeLit:
		if s, ok := n.Type.(*ast.SelectorExpr); ok && nameOf(s.X) == "types" && errorStruct.MatchString(s.Sel.Name) {
			return s.Sel.Name
		}
	}
	return ""
}

// codeArgument returns the place of the code among a call's arguments, or -1 if the call makes no refusal.
func codeArgument(f ast.Expr, folder string) int {
	name := nameOf(f)
	if folder == "../s3" {
		switch name { // statuses come first
		case "refuse", "refuseBucket":
			return 1
		case "missing":
			return 0
		}
	}
	if s, ok := f.(*ast.SelectorExpr); ok {
		name = nameOf(s.X) + "." + s.Sel.Name
	}
	switch name {
	case "refuse", "account.Refuse", "refusal.New":
		return 0
	case "account.RefuseWith", "refusal.With":
		return 1
	}
	return -1
}

// nameOf returns an identifier's name, or "" for anything else.
func nameOf(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// stringConstants returns a package's constants that are text.
func stringConstants(p ast.Node) map[string]string {
	out := map[string]string{}
	ast.Inspect(p, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				out[name.Name] = textOf(spec.Values[i], nil)
			}
		}
		return true
	})
	return out
}

// textOf returns the text of a literal or a constant, or "" for anything else, such as a parameter.
func textOf(e ast.Expr, constants map[string]string) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.Ident:
		return constants[e.Name]
	}
	return ""
}
