// Package acm is AWS Certificate Manager, as far as load balancers need it: certificates that are imported, with their private keys, which only
// the vault's key opens. A Service has the methods of the SDK's client, over the store. It issues none: nobody would trust them.
package acm

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/acm"
	"github.com/aws/aws-sdk-go-v2/service/acm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// Options are the account and region of the service, and what it seals private keys with.
type Options struct {
	account.Account
	Vault *vault.Vault
}

// Service is AWS Certificate Manager for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
}

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service { return &Service{store, opts} }

// now returns the time to the millisecond, the precision of rows.
func (s *Service) now() time.Time { return s.opts.Now().UTC().Truncate(time.Millisecond) }

func invalid(format string, args ...any) error {
	return account.Refuse("ValidationException", format, args...)
}

// find returns the certificate with an ARN.
func (s *Service) find(v *state.View, arn *string) (*state.Certificate, error) {
	if _, ok := s.opts.ResourceOf("acm", "certificate/", aws.ToString(arn)); !ok {
		return nil, &types.InvalidArnException{Message: account.Message("'%s' is not the ARN of a certificate of this account and region", aws.ToString(arn))}
	}
	row := v.Certificates.Get(*arn)
	if row == nil {
		return nil, &types.ResourceNotFoundException{Message: account.Message("Could not find certificate %s", *arn)}
	}
	return row, nil
}

// maxCertificates is the quota of imported certificates.
const maxCertificates = 2500

// ImportCertificate imports a certificate, or imports it anew under its ARN.
func (s *Service) ImportCertificate(ctx context.Context, in *api.ImportCertificateInput) (*api.ImportCertificateOutput, error) {
	if err := check(in); err != nil {
		return nil, err
	}
	row := &state.Certificate{
		ARN:         s.opts.ARN("acm", "certificate/"+state.NewUUID()),
		Certificate: string(in.Certificate),
		Chain:       string(in.CertificateChain),
		Imported:    s.now(),
		Created:     s.now(),
		Tags:        in.Tags,
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		if in.CertificateArn != nil {
			old, err := s.find(tx.View, in.CertificateArn)
			if err != nil {
				return err
			}
			if len(in.Tags) > 0 {
				return invalid("Tags cannot be given when a certificate is imported anew")
			}
			row.ARN = old.ARN
			row.Created = old.Created
			row.Tags = old.Tags
		} else if tx.Certificates.Len() >= maxCertificates {
			return &types.LimitExceededException{Message: account.Message("There are already %d certificates, the maximum", maxCertificates)}
		}
		row.PrivateKey = s.opts.Vault.Encrypt(string(in.PrivateKey), row.ARN)
		tx.Certificates.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.ImportCertificateOutput{CertificateArn: &row.ARN}, nil
}

// RequestCertificate refuses: nobody outside would trust a certificate that Pintle issues.
func (s *Service) RequestCertificate(context.Context, *api.RequestCertificateInput) (*api.RequestCertificateOutput, error) {
	return nil, &types.InvalidParameterException{Message: account.Message(
		"Pintle issues no certificates, since nobody would trust them: import one with ImportCertificate")}
}

// GetCertificate returns a certificate and its chain.
func (s *Service) GetCertificate(_ context.Context, in *api.GetCertificateInput) (*api.GetCertificateOutput, error) {
	row, err := s.find(s.store.View(), in.CertificateArn)
	if err != nil {
		return nil, err
	}
	out := &api.GetCertificateOutput{Certificate: &row.Certificate}
	if row.Chain != "" {
		out.CertificateChain = &row.Chain
	}
	return out, nil
}

// DeleteCertificate deletes a certificate that no listener has.
func (s *Service) DeleteCertificate(ctx context.Context, in *api.DeleteCertificateInput) (*api.DeleteCertificateOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		row, err := s.find(tx.View, in.CertificateArn)
		if err != nil {
			return err
		}
		if len(usersOf(tx.View, row.ARN)) > 0 {
			return &types.ResourceInUseException{Message: account.Message("Certificate %s in account %s is in use.", row.ARN, s.opts.ID)}
		}
		tx.Certificates.Delete(row.ARN)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &api.DeleteCertificateOutput{}, nil
}
