package secretsmanager

import (
	"context"
	"crypto/rand"
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// usualLength is the length of a password if the call gives none.
const usualLength = 32

// The kinds of characters of passwords.
const (
	lowercase   = "abcdefghijklmnopqrstuvwxyz"
	uppercase   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	numbers     = "0123456789"
	punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
)

// GetRandomPassword makes a password by chance, and keeps it nowhere.
func (s *Service) GetRandomPassword(
	_ context.Context, in *secretsmanager.GetRandomPasswordInput,
) (*secretsmanager.GetRandomPasswordOutput, error) {
	length := usualLength
	if in.PasswordLength != nil {
		length = int(*in.PasswordLength)
	}
	kinds := kindsOf(in)
	if len(kinds) == 0 {
		return nil, invalid("All characters are excluded, so there is no password.")
	}
	var password string
	if in.RequireEachIncludedType == nil || *in.RequireEachIncludedType {
		for _, kind := range kinds {
			password += randomText(kind, 1)
		}
	}
	if len(password) > length {
		return nil, invalid("Password length is too short based on the required types.")
	}
	password += randomText(strings.Join(kinds, ""), length-len(password))
	return &secretsmanager.GetRandomPasswordOutput{RandomPassword: new(shuffled(password))}, nil
}

// kindsOf returns the characters of each kind that a call allows, without kinds of which none is left.
func kindsOf(in *secretsmanager.GetRandomPasswordInput) (kinds []string) {
	excluded := aws.ToString(in.ExcludeCharacters)
	for _, k := range []struct {
		characters string
		exclude    bool
	}{
		{lowercase, aws.ToBool(in.ExcludeLowercase)},
		{uppercase, aws.ToBool(in.ExcludeUppercase)},
		{numbers, aws.ToBool(in.ExcludeNumbers)},
		{punctuation, aws.ToBool(in.ExcludePunctuation)},
		{" ", !aws.ToBool(in.IncludeSpace)},
	} {
		left := strings.Map(func(r rune) rune {
			if strings.ContainsRune(excluded, r) {
				return -1
			}
			return r
		}, k.characters)
		if left != "" && !k.exclude {
			kinds = append(kinds, left)
		}
	}
	return kinds
}

// shuffled returns a text's bytes in an order by chance.
func shuffled(text string) string {
	b := []byte(text)
	for i := len(b) - 1; i > 0; i-- {
		j, err := rand.Int(rand.Reader, big.NewInt(int64(i+1)))
		if err != nil {
			panic(err) // the reader never fails
		}
		b[i], b[j.Int64()] = b[j.Int64()], b[i]
	}
	return string(b)
}
