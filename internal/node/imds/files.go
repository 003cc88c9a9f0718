package imds

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// filesOf returns what the service tells, by path: "Instance metadata categories" in EC2's user guide.
func filesOf(i *acs.PintleInstance) map[string]string {
	files := map[string]string{}
	put := func(path, text string) {
		if text != "" {
			files[path] = text
		}
	}
	put("meta-data/ami-id", i.ImageID)
	put("meta-data/ami-launch-index", strconv.Itoa(i.LaunchIndex))
	put("meta-data/hostname", i.Hostname)
	put("meta-data/instance-action", "none")
	put("meta-data/instance-id", i.InstanceID)
	put("meta-data/instance-life-cycle", "on-demand")
	put("meta-data/instance-type", i.InstanceType)
	put("meta-data/local-hostname", i.Hostname)
	put("meta-data/local-ipv4", i.PrivateIPv4)
	put("meta-data/placement/availability-zone", i.Zone)
	put("meta-data/placement/region", i.Region)
	put("meta-data/reservation-id", i.Reservation)
	put("meta-data/security-groups", strings.Join(i.SecurityGroups, "\n"))
	put("meta-data/services/domain", "amazonaws.com")
	put("meta-data/services/partition", "aws")
	for key, value := range i.Tags {
		files["meta-data/tags/instance/"+key] = value
	}
	put("dynamic/instance-identity/document", identityDocument(i))
	if b, err := base64.StdEncoding.DecodeString(i.UserData); err == nil {
		put("user-data", string(b))
	}
	if p := i.Profile; p != nil {
		put("meta-data/iam/info", indented(map[string]string{
			"Code":               "Success",
			"LastUpdated":        p.UpdatedAt.UTC().Format(time.RFC3339),
			"InstanceProfileArn": p.Arn,
			"InstanceProfileId":  p.ID,
		}))
		if p.Credentials != nil {
			put("meta-data/iam/security-credentials/"+p.Role, indented(credentialsOf(p)))
		}
	}
	return files
}

// credentials is the form in which the SDKs read the role's credentials.
type credentials struct {
	Code            string
	LastUpdated     string
	Type            string
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	Token           string
	Expiration      string
}

func credentialsOf(p *acs.InstanceProfile) credentials {
	return credentials{
		Code:            "Success",
		LastUpdated:     p.UpdatedAt.UTC().Format(time.RFC3339),
		Type:            "AWS-HMAC",
		AccessKeyID:     p.Credentials.AccessKeyID,
		SecretAccessKey: p.Credentials.SecretAccessKey,
		Token:           p.Credentials.SessionToken,
		Expiration:      p.Credentials.Expiration,
	}
}

// identityDocument returns the document that says which instance this is. Nobody has signed it.
func identityDocument(i *acs.PintleInstance) string {
	return indented(map[string]any{
		"accountId":               i.Account,
		"architecture":            i.Architecture,
		"availabilityZone":        i.Zone,
		"billingProducts":         nil,
		"devpayProductCodes":      nil,
		"imageId":                 i.ImageID,
		"instanceId":              i.InstanceID,
		"instanceType":            i.InstanceType,
		"kernelId":                nil,
		"marketplaceProductCodes": nil,
		"pendingTime":             i.LaunchedAt.UTC().Format(time.RFC3339),
		"privateIp":               i.PrivateIPv4,
		"ramdiskId":               nil,
		"region":                  i.Region,
		"version":                 "2017-09-30",
	})
}

// indented encodes what can't fail.
func indented(v any) string {
	b, _ := json.MarshalIndent(v, "", "  ")
	return string(b)
}
