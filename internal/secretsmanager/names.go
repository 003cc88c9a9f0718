package secretsmanager

import (
	"crypto/rand"
	"regexp"
	"strings"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxName is the longest name of a secret: API_CreateSecret.
const maxName = 512

var validName = regexp.MustCompile(`^[a-zA-Z0-9/_+=.@!-]*$`)

// checkName checks what a caller calls a secret: its name, or its ARN.
func checkName(id string) error {
	name := id
	if strings.HasPrefix(id, "arn:") {
		name = strings.ReplaceAll(id, ":", "")
	}
	if !validName.MatchString(name) {
		return account.Refuse("ValidationException",
			"Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!")
	}
	return nil
}

// suffixLength is how many random characters an ARN ends with, behind a hyphen.
const suffixLength = 6

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// newARN returns the ARN of a new secret.
func (s *Service) newARN(name string) string {
	return s.opts.ARN("secretsmanager", "secret:"+name+"-"+randomText(alphanumeric, suffixLength))
}

// randomText returns characters of an alphabet by chance, each as likely as any other.
func randomText(alphabet string, length int) string {
	out := make([]byte, 0, length)
	fair := 256 - 256%len(alphabet) // bytes from here on would make the first characters likelier
	for len(out) < length {
		var more [64]byte
		rand.Read(more[:]) // never fails
		for _, b := range more {
			if int(b) < fair && len(out) < length {
				out = append(out, alphabet[int(b)%len(alphabet)])
			}
		}
	}
	return string(out)
}

// find returns the secret that a caller means by its name, its ARN, or its ARN without the random characters.
func (s *Service) find(v *state.View, id string) (*state.Secret, error) {
	if err := checkName(id); err != nil {
		return nil, err
	}
	rest, isARN := s.opts.ResourceOf("secretsmanager", "secret:", id)
	if !isARN {
		return s.named(v, id)
	}
	if end := len(rest) - suffixLength - 1; end > 0 && rest[end] == '-' {
		if secret, err := s.named(v, rest[:end]); err == nil && secret.ARN == id {
			return secret, nil
		}
	}
	return s.named(v, rest)
}

func (s *Service) named(v *state.View, name string) (*state.Secret, error) {
	if secret := v.Secrets.Get(name); secret != nil && !secret.Gone(s.now()) {
		return secret, nil
	}
	return nil, notFound()
}

// findActive is find for what can't be done with a secret that is to be deleted.
func (s *Service) findActive(v *state.View, id string) (*state.Secret, error) {
	secret, err := s.find(v, id)
	if err == nil && secret.DeletedAt != nil {
		return nil, impossible("You can't perform this operation on the secret because it was marked for deletion.")
	}
	return secret, err
}
