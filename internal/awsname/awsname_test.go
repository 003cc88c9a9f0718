package awsname

import "testing"

// TestParse: names of AWS's endpoints, old and new.
func TestParse(t *testing.T) {
	for _, c := range []struct {
		name   string
		want   Host
		served bool
	}{
		{"sqs.us-east-1.amazonaws.com", Host{"sqs", "us-east-1", ""}, true},
		{"SQS.us-east-1.Amazonaws.com.", Host{"sqs", "us-east-1", ""}, true},
		{"queue.amazonaws.com", Host{"sqs", "", ""}, true},
		{"us-west-2.queue.amazonaws.com", Host{"sqs", "us-west-2", ""}, true},
		{"sqs-fips.us-gov-west-1.amazonaws.com", Host{"sqs", "us-gov-west-1", ""}, true},
		{"monitoring.us-east-1.amazonaws.com", Host{"monitoring", "us-east-1", ""}, true},
		{"logs.eu-central-1.amazonaws.com", Host{"logs", "eu-central-1", ""}, true},
		{"ecs.us-east-1.amazonaws.com", Host{"ecs", "us-east-1", ""}, true},
		{"ecs-a-12.us-east-1.amazonaws.com", Host{"ecs", "us-east-1", ""}, true},
		{"ecs-t-3.us-east-1.amazonaws.com", Host{"ecs", "us-east-1", ""}, true},
		{"ec2.amazonaws.com", Host{"ec2", "", ""}, true},
		{"autoscaling.us-east-1.amazonaws.com", Host{"autoscaling", "us-east-1", ""}, true},
		{"application-autoscaling.us-east-1.amazonaws.com", Host{"application-autoscaling", "us-east-1", ""}, true},
		{"cloudformation.ap-southeast-2.amazonaws.com", Host{"cloudformation", "ap-southeast-2", ""}, true},
		{"sts.amazonaws.com", Host{"sts", "", ""}, true},
		{"sts.us-east-1.amazonaws.com", Host{"sts", "us-east-1", ""}, true},
		{"iam.amazonaws.com", Host{"iam", "", ""}, true},
		{"api.ecr.us-east-1.amazonaws.com", Host{"ecr", "us-east-1", ""}, true},
		{"123456789012.dkr.ecr.us-east-1.amazonaws.com", Host{"ecr", "us-east-1", ""}, true},
		{"data-servicediscovery.us-east-1.amazonaws.com", Host{"servicediscovery", "us-east-1", ""}, true},
		{"s3.amazonaws.com", Host{"s3", "", ""}, true},
		{"s3-us-west-2.amazonaws.com", Host{"s3", "us-west-2", ""}, true},
		{"s3.us-west-2.amazonaws.com", Host{"s3", "us-west-2", ""}, true},
		{"s3.dualstack.us-west-2.amazonaws.com", Host{"s3", "us-west-2", ""}, true},
		{"b.s3.amazonaws.com", Host{"s3", "", "b"}, true},
		{"b.s3.us-east-1.amazonaws.com", Host{"s3", "us-east-1", "b"}, true},
		{"b.s3-eu-west-1.amazonaws.com", Host{"s3", "eu-west-1", "b"}, true},
		{"b.s3-external-1.amazonaws.com", Host{"s3", "", "b"}, true},
		{"a.b.s3.dualstack.us-east-1.amazonaws.com", Host{"s3", "us-east-1", "a.b"}, true},
		{"a.s3.b.s3.us-east-1.amazonaws.com", Host{"s3", "us-east-1", "a.s3.b"}, true},
		{"sqs.s3.amazonaws.com", Host{"s3", "", "sqs"}, true},
		{"s3.s3.amazonaws.com", Host{"s3", "", "s3"}, true},
		{"email.us-east-1.amazonaws.com", Host{"ses", "us-east-1", ""}, false},
		{"dynamodb.us-east-1.amazonaws.com", Host{"dynamodb", "us-east-1", ""}, false},
		{"b.s3-website-us-east-1.amazonaws.com", Host{"b.s3-website-us-east-1", "", ""}, false},
		{"1.s3-control.us-east-1.amazonaws.com", Host{"1.s3-control", "us-east-1", ""}, false},
		{"x.sqs.us-east-1.amazonaws.com", Host{"x.sqs", "us-east-1", ""}, false},
	} {
		got, ok := Parse(c.name)
		if !ok || got != c.want || Served(c.name) != c.served {
			t.Errorf("%s: %+v, %v; served: %v", c.name, got, ok, Served(c.name))
		}
	}
	for _, name := range []string{"", "amazonaws.com", ".amazonaws.com", "sqs.us-east-1.amazonaws.com.evil.example", "sqsamazonaws.com", "localhost", "sqs.us-east-1.api.aws"} {
		if h, ok := Parse(name); ok || Served(name) {
			t.Errorf("%q is %+v", name, h)
		}
	}
}

// FuzzParse: whatever is asked for has an answer, and no name has a service that's outside AWS's domain.
func FuzzParse(f *testing.F) {
	f.Add("a.s3.us-east-1.amazonaws.com")
	f.Fuzz(func(t *testing.T, name string) {
		if _, ok := Parse(name); ok && !IsAWS(Fold(name)) {
			t.Error(name)
		}
	})
}
