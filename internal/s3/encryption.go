package s3

import (
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/bits"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/s3/objects"
)

// customerKey is a key that comes with a call (SSE-C). What it encrypts is AES-256 in counter mode, so that ranges can be read. The first
// counter of a file is random, and is its ETag, too: such an ETag isn't an MD5 on AWS either. The key is never stored.
type customerKey struct {
	key []byte
	md5 string // as the call has it
}

// keyHeader is the argument that S3 names in errors about keys.
const keyHeader = "x-amz-server-side-encryption"

// newCustomerKey returns the key that a call has, nil if it has none.
func newCustomerKey(algorithm, key, sum *string, other types.ServerSideEncryption) (*customerKey, error) {
	const requests = "Requests specifying Server Side Encryption with Customer provided keys must provide "
	switch {
	case algorithm == nil && key == nil:
		return nil, nil
	case other != "":
		return nil, invalidArgument(
			keyHeader, string(other),
			"Server Side Encryption with Customer provided key is incompatible with the encryption method specified",
		)
	case algorithm == nil:
		return nil, invalidArgument(keyHeader, "", requests+"a valid encryption algorithm.")
	case key == nil:
		return nil, invalidArgument(keyHeader, "", requests+"an appropriate secret key.")
	case *algorithm != string(types.ServerSideEncryptionAes256):
		return nil, &apiError{
			code:    "InvalidEncryptionAlgorithmError",
			message: "The Encryption request you specified is not valid. Supported value: AES256.",
			status:  400,
			detail:  map[string]string{"ArgumentName": keyHeader, "ArgumentValue": *algorithm},
		}
	}
	b, err := base64.StdEncoding.DecodeString(*key)
	if err != nil || len(b) != 32 {
		return nil, invalidArgument(keyHeader, "", "The secret key was invalid for the specified algorithm.")
	}
	if digest := md5.Sum(b); base64.StdEncoding.EncodeToString(digest[:]) != aws.ToString(sum) {
		return nil, invalidArgument(keyHeader, "", "The calculated MD5 hash of the key did not match the hash that was provided.")
	}
	return &customerKey{b, *sum}, nil
}

// report returns how answers report an object's encryption.
func (a attributes) report() (own types.ServerSideEncryption, algorithm, keyMD5 *string) {
	if a.key == nil {
		return cmp.Or(a.Encryption, types.ServerSideEncryptionAes256), nil, nil
	}
	return "", aws.String(string(types.ServerSideEncryptionAes256)), &a.key.md5
}

// isServed reports whether objects can be encrypted like that. aws:kms is with AWS's own key for S3, as if Pintle had one: both are so by name
// alone, since encrypting is left to the disk.
func isServed(algorithm types.ServerSideEncryption) bool {
	return algorithm == types.ServerSideEncryptionAes256 || algorithm == types.ServerSideEncryptionAwsKms
}

// lock is what is kept of a customer's key: enough to tell it from others.
type lock struct {
	Salt []byte
	Sum  []byte
}

func (k *customerKey) lock() *lock {
	if k == nil {
		return nil
	}
	salt := make([]byte, 16)
	rand.Read(salt) //nolint:errcheck // it never fails
	return &lock{salt, k.sum(salt)}
}

func (k *customerKey) sum(salt []byte) []byte {
	h := hmac.New(sha256.New, salt)
	h.Write(k.key)
	return h.Sum(nil)
}

// fits reports whether the key is the one that the lock was made of. No key fits no lock.
func (k *customerKey) fits(l *lock) bool {
	if k == nil || l == nil {
		return k == nil && l == nil
	}
	return subtle.ConstantTimeCompare(k.sum(l.Salt), l.Sum) == 1
}

// checkReadKey refuses to read an object with another key than it was written with.
func checkReadKey(l *lock, k *customerKey) error {
	switch {
	case k.fits(l):
		return nil
	case l == nil:
		return refuse(400, "InvalidRequest", "The encryption parameters are not applicable to this object.")
	case k == nil:
		return refuse(
			400, "InvalidRequest",
			"The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object.",
		)
	}
	return errWrongKey
}

var errWrongKey = refuse(
	403, "AccessDenied", "Requests specifying Server Side Encryption with Customer provided keys must provide the correct secret key.",
)

// checkPartKey refuses a part with another key than its upload began with.
func checkPartKey(l *lock, k *customerKey) error {
	switch {
	case k.fits(l):
		return nil
	case l == nil, k == nil: // S3 says the same of both
		return refuse(
			400, "InvalidRequest",
			"The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate encryption parameters.",
		)
	}
	return refuse(400, "InvalidRequest", "The provided encryption parameters did not match the ones used originally.")
}

// encrypt returns the body encrypted, and the ETag of the file that it will be. Without a key it returns the body.
func (k *customerKey) encrypt(body io.Reader) (encrypted io.Reader, etag string) {
	if k == nil {
		return body, ""
	}
	counter := make([]byte, aes.BlockSize)
	rand.Read(counter) //nolint:errcheck // it never fails
	return &cipher.StreamReader{S: k.stream(counter, 0), R: body}, hex.EncodeToString(counter)
}

// stream returns the key stream of a file from an offset on.
func (k *customerKey) stream(counter []byte, from int64) cipher.Stream {
	low, carry := bits.Add64(binary.BigEndian.Uint64(counter[8:]), uint64(from/aes.BlockSize), 0)
	var at [aes.BlockSize]byte
	binary.BigEndian.PutUint64(at[:8], binary.BigEndian.Uint64(counter)+carry)
	binary.BigEndian.PutUint64(at[8:], low)
	block, _ := aes.NewCipher(k.key) // its length was checked
	stream := cipher.NewCTR(block, at[:])
	skipped := make([]byte, from%aes.BlockSize)
	stream.XORKeyStream(skipped, skipped)
	return stream
}

// readKey returns the key of a read. A read that lacks the key's MD5 is refused like one with another key.
func readKey(in *s3.GetObjectInput) (*customerKey, error) {
	if in.SSECustomerAlgorithm != nil && in.SSECustomerKey != nil && in.SSECustomerKeyMD5 == nil {
		return nil, errWrongKey
	}
	return newCustomerKey(in.SSECustomerAlgorithm, in.SSECustomerKey, in.SSECustomerKeyMD5, "")
}

// encryptedFiles checks a read's key, and returns the object's files if they are encrypted with it.
func (s *Service) encryptedFiles(ctx context.Context, o *objects.Object, k *customerKey) ([]*objects.File, error) {
	a, err := attributesOf(o.Attributes)
	if err != nil {
		return nil, err
	}
	if err := checkReadKey(a.Lock, k); err != nil || k == nil {
		return nil, err
	}
	return s.store.Files(ctx, o, -1, maxParts)
}

// decrypted is a stretch of an object's files in the clear.
type decrypted struct {
	io.ReadCloser
	key    *customerKey
	files  []*objects.File // the first one is being read
	at     int64           // in it
	stream cipher.Stream   // of it, nil at its start
}

// decrypt returns a stretch of encrypted files in the clear. Without files, the body isn't encrypted.
func decrypt(body io.ReadCloser, k *customerKey, files []*objects.File, from int64) io.ReadCloser {
	if len(files) == 0 {
		return body
	}
	for len(files) > 1 && from >= files[0].Size {
		from -= files[0].Size
		files = files[1:]
	}
	return &decrypted{ReadCloser: body, key: k, files: files, at: from}
}

// Read implements io.Reader.
func (d *decrypted) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	for b := p[:n]; len(b) > 0; {
		f := d.files[0]
		if d.at == f.Size {
			d.files = d.files[1:]
			d.at = 0
			d.stream = nil
			continue
		}
		if d.stream == nil {
			counter, err := hex.DecodeString(f.ETag)
			if err != nil || len(counter) != aes.BlockSize {
				return 0, refuse(500, "InternalError", "The object's encryption is damaged.")
			}
			d.stream = d.key.stream(counter, d.at)
		}
		here := b[:min(int64(len(b)), f.Size-d.at)]
		d.stream.XORKeyStream(here, here)
		d.at += int64(len(here))
		b = b[len(here):]
	}
	return n, err
}
