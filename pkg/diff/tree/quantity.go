package tree

import (
	"math/big"
	"strconv"
	"strings"
)

// quantity returns a spelling that all equal quantities share, and whether the value is a quantity.
// resource.ParseQuantity cannot be used, because manifests are hostile and it would compute
// 1e2147483647.
func quantity(value any) (string, bool) {
	spelled, ok := spelling(value)
	if !ok {
		return "", false
	}
	end := strings.LastIndexAny(spelled, "0123456789.") + 1
	number, suffix := spelled[:end], spelled[end:]
	// The digits at the end may belong to an exponent.
	exponent := 0
	if at := strings.IndexAny(number, "eE"); at >= 0 && suffix == "" {
		var err error
		if exponent, err = strconv.Atoi(number[at+1:]); err != nil || exponent < -100 || exponent > 100 {
			return "", false
		}
		number = number[:at]
	}
	if !isDecimal(number) {
		return "", false
	}
	amount, ok := new(big.Rat).SetString(number)
	if !ok {
		return "", false
	}
	base, power, ok := quantitySuffix(suffix)
	if !ok {
		return "", false
	}
	scale(amount, base, power)
	scale(amount, 10, exponent)
	return amount.RatString(), true
}

// spelling returns a quantity as the manifest writes it. It returns false for a value that is no
// quantity or is too long.
func spelling(value any) (string, bool) {
	var spelled string
	switch v := value.(type) {
	case string:
		spelled = v
	case int64:
		spelled = strconv.FormatInt(v, 10)
	case float64:
		spelled = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return "", false
	}
	const longest = 64
	return spelled, len(spelled) <= longest
}

func isDecimal(s string) bool {
	s = strings.TrimLeft(s, "+-")
	whole, fraction, _ := strings.Cut(s, ".")
	return whole+fraction != "" && strings.Trim(whole+fraction, "0123456789") == ""
}

func quantitySuffix(suffix string) (base int64, power int, ok bool) {
	switch suffix {
	case "":
		return 1, 0, true
	case "n":
		return 10, -9, true
	case "u":
		return 10, -6, true
	case "m":
		return 10, -3, true
	case "k":
		return 10, 3, true
	}
	letter, binary := strings.CutSuffix(suffix, "i")
	at := strings.Index("KMGTPE", letter) + 1
	if len(letter) != 1 || at == 0 || letter == "K" && !binary {
		return 0, 0, false
	}
	if binary {
		return 1024, at, true
	}
	return 10, 3 * at, true
}

func scale(amount *big.Rat, base int64, power int) {
	factor := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(base), big.NewInt(int64(max(power, -power))), nil))
	if power < 0 {
		factor.Inv(factor)
	}
	amount.Mul(amount, factor)
}
