package authorize

import (
	"cmp"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/iam/policy"
)

// input is a call's input, and the user who calls.
type input struct {
	reflect.Value
	user string
}

// or returns what stands for a member that isn't given.
func (in input) or(p part) string {
	if p.or == "$USER" {
		return in.user
	}
	return p.or
}

// readers read members that hold more than a name, each as its service does: whoever reads otherwise checks another resource than the call
// is about.
var readers = map[string]struct {
	member string
	read   func(value string) string
}{
	"ChangeSetARN":       {"ChangeSetName", changeSetARN},
	"CopySource":         {"CopySource", func(v string) string { source, _ := copySource(v); return source }},
	"CopySourceVersion":  {"CopySource", func(v string) string { _, version := copySource(v); return version }},
	"Code.ImageIn":       {"Code.ImageUri", repositoryOf},
	"FunctionName":       {"FunctionName", functionName},
	"ImageIn":            {"ImageUri", repositoryOf},
	"QueueUrl":           {"QueueUrl", queueName},
	"StackName":          {"StackName", stackName},
	"SubscriptionTopic":  {"SubscriptionArn", TopicOf},
	"PolicyObject":       {"StackPolicyURL", objectAt},
	"UpdatePolicyObject": {"StackPolicyDuringUpdateURL", objectAt},
	"TemplateObject":     {"TemplateURL", objectAt},
	"TaskDefinition":     {"TaskDefinition", afterSlash},
	"TaskDefinitions":    {"TaskDefinitions", afterSlash},
	"TaggedResources":    {"Resources", ofEC2},
}

// TopicOf returns the ARN of the topic in a subscription's: policies are about topics.
func TopicOf(value string) string {
	if topic := value[:max(strings.LastIndexByte(value, ':'), 0)]; isARN(topic) {
		return topic
	}
	return value
}

// partOfARN begins a part of a function's ARN, such as 123456789012:function:name. A function's own name may end in "function", too.
var partOfARN = regexp.MustCompile(`^(\d{12}:)?function:`)

// functionName returns the name in a part of a function's ARN. An ARN stays what it is.
func functionName(value string) string { return partOfARN.ReplaceAllString(value, "") }

// FunctionName returns the name of the function that a call names in any of these ways, without a qualifier.
func FunctionName(value string) string {
	if isARN(value) {
		_, value, _ = strings.Cut(value, ":function:")
	}
	name, _, _ := strings.Cut(functionName(value), ":")
	return name
}

// inECR matches the names of images in a registry of ECR's, wherever that is reached.
var inECR = regexp.MustCompile(`^\d{12}\.dkr\.ecr\.[^/]+/([^:@]+)`)

// repositoryOf returns the repository of an image that is in ECR, and "" for one in another registry.
func repositoryOf(image string) string {
	if parts := inECR.FindStringSubmatch(image); parts != nil {
		return parts[1]
	}
	return ""
}

func afterSlash(value string) string { return value[strings.LastIndexByte(value, '/')+1:] }

// values returns the values of the member at a path such as Overrides.TaskRoleArn; of lists on the way, those of each element.
func (in input) values(path string) (values []string) {
	r, special := readers[path]
	if !special {
		return in.member(path)
	}
	for _, v := range in.member(r.member) {
		if read := r.read(v); read != "" {
			values = append(values, read)
		}
	}
	return values
}

// givesEmpty reports whether the input gives an empty text for a member.
func (in input) givesEmpty(path string) bool {
	v := reflect.Indirect(in.Value)
	for name := range strings.SplitSeq(path, ".") {
		if v.Kind() != reflect.Struct {
			return false
		}
		if v = v.FieldByName(name); v.Kind() != reflect.Pointer || v.IsNil() {
			return false
		}
		v = v.Elem()
	}
	return v.Kind() == reflect.String && v.Len() == 0
}

func (in input) member(path string) []string {
	return valuesAt(in.Value, strings.Split(path, "."))
}

// valuesAt returns the values below v, of a map its keys. Empty texts count as not given.
func valuesAt(v reflect.Value, path []string) (values []string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return valuesAt(v.Elem(), path)
	case reflect.Slice:
		for i := range v.Len() {
			values = append(values, valuesAt(v.Index(i), path)...)
		}
		return values
	case reflect.Map:
		for _, key := range v.MapKeys() {
			values = append(values, scalar(key)...)
		}
		slices.Sort(values)
		return values
	case reflect.Struct:
		if len(path) == 0 {
			return nil
		}
		if f := v.FieldByName(path[0]); f.IsValid() {
			return valuesAt(f, path[1:])
		}
		return nil
	}
	return scalar(v)
}

func scalar(v reflect.Value) []string {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			return []string{v.String()}
		}
	case reflect.Bool:
		return []string{strconv.FormatBool(v.Bool())}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return []string{strconv.FormatInt(v.Int(), 10)}
	case reflect.Float32, reflect.Float64:
		return []string{strconv.FormatFloat(v.Float(), 'f', -1, 64)}
	}
	return nil
}

// copySource returns the bucket and key of a copy's source, and the version that it names or "". The header is escaped.
func copySource(value string) (source, version string) {
	source, version, _ = strings.Cut(value, "?versionId=")
	if plain, err := url.QueryUnescape(source); err == nil {
		source = plain
	}
	return strings.TrimPrefix(source, "/"), version
}

// queueName returns the name in a queue's URL.
func queueName(value string) string {
	if u, err := url.Parse(value); err == nil && strings.Contains(value, "/") {
		value = strings.Trim(u.Path, "/")
	}
	return afterSlash(value)
}

// objectAt returns the bucket and key of a template's URL: by host, as BUCKET.s3.REGION.amazonaws.com/KEY, or by path.
func objectAt(value string) string {
	u, err := url.Parse(value)
	if err != nil {
		return ""
	}
	name := strings.TrimPrefix(u.Path, "/")
	if host, isAWS := strings.CutSuffix(u.Hostname(), ".amazonaws.com"); isAWS {
		if i := strings.LastIndex(host, ".s3"); i > 0 {
			name = host[:i] + "/" + name
		}
	}
	return name
}

// kindsOfEC2 are the kinds of EC2's resources, as ARNs have them, by what their ids begin with.
var kindsOfEC2 = map[string]string{
	"acl":      "network-acl",
	"dopt":     "dhcp-options",
	"eigw":     "egress-only-internet-gateway",
	"eipalloc": "elastic-ip",
	"eni":      "network-interface",
	"i":        "instance",
	"igw":      "internet-gateway",
	"key":      "key-pair",
	"lt":       "launch-template",
	"nat":      "natgateway",
	"pg":       "placement-group",
	"rtb":      "route-table",
	"sg":       "security-group",
	"sgr":      "security-group-rule",
	"subnet":   "subnet",
	"vol":      "volume",
	"vpc":      "vpc",
	"vpce":     "vpc-endpoint",
}

// ofEC2 returns how the ARN of a resource with an id ends. An id of no kind has one that only a policy for all resources allows.
func ofEC2(id string) string {
	prefix, _, _ := strings.Cut(id, "-")
	return cmp.Or(kindsOfEC2[prefix], "*") + "/" + id
}

// Value returns the first value that the input gives for one of the members at paths, or "".
func Value(in any, paths ...string) string {
	for _, path := range paths {
		if values := (input{Value: reflect.ValueOf(in)}).member(path); len(values) > 0 {
			return values[0]
		}
	}
	return ""
}

// changeSetARN returns what was given if it's an ARN: then the stack's name doesn't count.
func changeSetARN(value string) string {
	if strings.HasPrefix(value, "arn:") {
		return value
	}
	return ""
}

// stackName returns the name of a stack in its ARN, or the name that was given.
func stackName(value string) string {
	if _, resource, ok := strings.Cut(value, ":stack/"); ok && isARN(value) {
		value, _, _ = strings.Cut(resource, "/")
	}
	return value
}

// addTags adds the tags that a call gives, and the keys of those that it takes away.
func (in input) addTags(known policy.Context) {
	names := in.member("TagKeys")
	add := func(name, value string) {
		names = append(names, name)
		known.Set("aws:RequestTag/"+name, value)
	}
	for _, path := range []string{"Tags", "TagSpecifications.Tags", "Tagging.TagSet"} {
		names = append(names, in.member(path)...) // keys alone, of the older calls of CloudWatch Logs
		eachTag(in.Value, strings.Split(path, "."), add)
	}
	if len(names) > 0 {
		known.Set("aws:TagKeys", names...)
	}
}

// Tags returns the tags in a service's answer to a call that lists or describes them.
func Tags(answer any) map[string]string {
	found := map[string]string{}
	for _, path := range []string{"Tags", "TagList", "Stacks.Tags"} {
		eachTag(reflect.ValueOf(answer), strings.Split(path, "."), func(name, value string) { found[name] = value })
	}
	return found
}

// eachTag calls visit with the tags at a path: a list of structs with Key and Value, or a map.
func eachTag(v reflect.Value, path []string, visit func(name, value string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachTag(v.Elem(), path, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachTag(v.Index(i), path, visit)
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			visit(each.Key().String(), each.Value().String())
		}
	case reflect.Struct:
		if len(path) > 0 {
			if f := v.FieldByName(path[0]); f.IsValid() {
				eachTag(f, path[1:], visit)
			}
			return
		}
		if name := valuesAt(v, []string{"Key"}); len(name) == 1 {
			visit(name[0], strings.Join(valuesAt(v, []string{"Value"}), ""))
		}
	}
}
