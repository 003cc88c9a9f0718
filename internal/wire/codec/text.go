package codec

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"
)

// SetText parses text into the scalar v.
func SetText(sh *Shape, v reflect.Value, text string) (err error) {
	switch sh.Kind {
	case KindPointer:
		v.Set(reflect.New(sh.Elem.Type))
		return SetText(sh.Elem, v.Elem(), text)
	case KindString:
		v.SetString(text)
	case KindBool:
		var b bool
		b, err = strconv.ParseBool(text)
		v.SetBool(b)
	case KindInt:
		var n int64
		n, err = strconv.ParseInt(text, 10, sh.Type.Bits())
		v.SetInt(n)
	case KindTime:
		var t time.Time
		if t, err = http.ParseTime(text); err != nil {
			t, err = time.Parse(time.RFC3339, text)
		}
		v.Set(reflect.ValueOf(t))
	default:
		return errors.New("not a scalar")
	}
	return err
}
