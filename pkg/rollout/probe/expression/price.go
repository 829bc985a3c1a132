package expression

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// pricer pays for a call before it is done.
type pricer func(m *CostBudget, args []ref.Val)

// pricers say what calls of functions cost beyond the unit that every node costs, by the
// name of the function. Every function that expressions may use is in it, or in free:
// one that is not cannot be used.
func pricers() map[string]pricer {
	all := map[string]pricer{
		operators.Equals: whole, operators.NotEquals: whole,
		operators.Less: texts, operators.LessEquals: texts, operators.Greater: texts, operators.GreaterEquals: texts,
		operators.Add: addition, operators.In: membership, operators.OldIn: membership, overloads.DeprecatedIn: membership,
		"size": texts, "contains": whole, "indexOf": search, "lastIndexOf": search,
		"replace": replacement, "split": parts, "join": joined, "format": formatted, "validate": validation,
		"lists.range": numbers, "slice": elements, "reverse": elements, "optional.unwrap": elements, "unwrapOpt": elements,
		"flatten": copies, "distinct": pairs, "sort": sorted, "@sortByAssociatedKeys": sorted,
		"sets.contains": products, "sets.equivalent": products, "sets.intersects": products,
		"cel.@mapInsert": insertion,
		// Numbers of any size, and what has to be parsed.
		"quantity": dear(100), "isQuantity": dear(100), "add": dear(50), "sub": dear(50), "compareTo": dear(30), "isGreaterThan": dear(30), "isLessThan": dear(30),
		"semver": dear(20), "isSemver": dear(20), "ip": dear(10), "isIP": dear(10), "ip.isCanonical": dear(20), "cidr": dear(10), "isCIDR": dear(10),
		"containsIP": dear(10), "containsCIDR": dear(10), "masked": dear(10), "url": dear(10), "isURL": dear(10), "timestamp": dear(5), "duration": dear(5),
	}
	for _, name := range []string{
		// They read all of a text, or of a list.
		"startsWith", "endsWith", "charAt", "substring", "trim", "lowerAscii", "upperAscii", "strings.quote",
		"isSorted", "sum", "min", "max", "includes",
		"bool", "bytes", "double", "int", "string", "uint",
		"getScheme", "getHost", "getHostname", "getPort", "getEscapedPath", "getQuery", "format.named",
	} {
		all[name] = whole
	}
	for _, name := range []string{
		"getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds",
	} {
		all[name] = clock
	}
	return all
}

// free are functions that cost the unit of their node and nothing else: they look at one
// value, however large it is.
func free() []string {
	return []string{
		operators.LogicalNot, operators.LogicalAnd, operators.LogicalOr, operators.Conditional, operators.NotStrictlyFalse, "__not_strictly_false__",
		operators.Negate, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
		// Their keys are paid for (see planner).
		operators.Index, operators.OptIndex, operators.OptSelect,
		"dyn", "type", "first", "last",
		"optional.none", "optional.of", "optional.ofNonZeroValue", "hasValue", "value", "or", "orValue",
		"major", "minor", "patch", "sign", "isInteger", "asInteger", "asApproximateFloat",
		"family", "isGlobalUnicast", "isLinkLocalMulticast", "isLinkLocalUnicast", "isLoopback", "isUnspecified", "prefixLength",
		"format.dns1123Label", "format.dns1123Subdomain", "format.dns1035Label", "format.qualifiedName", "format.dns1123LabelPrefix",
		"format.dns1123SubdomainPrefix", "format.dns1035LabelPrefix", "format.labelValue", "format.uri", "format.uuid", "format.byte",
		"format.date", "format.datetime",
		// There is no authorizer to call them on.
		"path", "group", "resource", "subresource", "namespace", "name", "serviceAccount", "check", "allowed", "reason", "errored", "error",
		"fieldSelector", "labelSelector",
	}
}

// whole reads its arguments from end to end.
func whole(m *CostBudget, args []ref.Val) {
	for _, arg := range args {
		m.payFor(arg)
	}
}

// dear reads its arguments from end to end, which takes so many units at least.
func dear(units uint64) pricer {
	return func(m *CostBudget, args []ref.Val) {
		m.pay(units)
		whole(m, args)
	}
}

// copies makes another list of what is in its argument.
func copies(m *CostBudget, args []ref.Val) {
	for range 4 {
		whole(m, args)
	}
}

// texts reads texts, and nothing of what is in lists and maps.
func texts(m *CostBudget, args []ref.Val) {
	for _, arg := range args {
		m.pay(textUnits(textLength(arg)))
	}
}

// textLength is the length of a text in bytes, and 0 for anything else.
func textLength(value ref.Val) int {
	switch value := value.(type) {
	case types.String:
		return len(value)
	case types.Bytes:
		return len(value)
	}
	return 0
}

// text is an argument as text, empty for anything else.
func text(args []ref.Val, at int) string {
	if at < len(args) {
		if value, isText := args[at].(types.String); isText {
			return string(value)
		}
	}
	return ""
}

// addition copies texts and lists. A list that is being made by a macro only grows by
// what is added.
func addition(m *CostBudget, args []ref.Val) {
	texts(m, args)
	if _, grows := args[0].(traits.MutableLister); !grows {
		m.pay(2 * length(args[0]))
	}
	m.pay(2 * length(args[1]))
}

// membership compares with all elements of a list, and looks a key of a map up.
func membership(m *CostBudget, args []ref.Val) {
	m.payFor(args[0])
	if _, isList := args[1].(traits.Lister); isList {
		m.payFor(args[1])
	}
}

// search compares at each place of a text.
func search(m *CostBudget, args []ref.Val) {
	whole(m, args)
	const comparisonsPerUnit = 50
	m.pay(uint64(textLength(args[0])) * uint64(len(text(args, 1))) / comparisonsPerUnit)
}

// replacement makes a text as long as what is replaced makes it.
func replacement(m *CostBudget, args []ref.Val) {
	whole(m, args)
	old, found := text(args, 1), strings.Count(text(args, 0), text(args, 1))
	if len(args) == 4 {
		if most, ok := args[3].(types.Int); ok && most >= 0 {
			found = min(found, int(most))
		}
	}
	m.pay(uint64(found))
	m.pay(textUnits(max(0, found*(len(text(args, 2))-len(old)))))
}

// parts makes a text for each part.
func parts(m *CostBudget, args []ref.Val) {
	whole(m, args)
	m.pay(uint64(strings.Count(text(args, 0), text(args, 1)) + 1))
}

// joined puts a separator between elements.
func joined(m *CostBudget, args []ref.Val) {
	whole(m, args)
	m.pay(length(args[0]) * textUnits(len(text(args, 1))+bytesPerUnit))
}

// formatted prints values, which sorts keys and copies several times, and as many digits
// as the format says.
func formatted(m *CostBudget, args []ref.Val) {
	const each = 1500
	m.pay(each + each*length(args[1]))
	for range 8 {
		whole(m, args)
	}
	digits := strings.FieldsFunc(text(args, 0), func(r rune) bool { return r < '0' || r > '9' })
	for _, number := range digits {
		n, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			n = 1 << 32
		}
		m.pay(n)
	}
}

// validation matches patterns of about a hundred steps.
func validation(m *CostBudget, args []ref.Val) {
	for _, arg := range args {
		m.pay(10 + 20*m.payFor(arg))
	}
}

// numbers makes that many of them.
func numbers(m *CostBudget, args []ref.Val) {
	if n, ok := args[0].(types.Int); ok && n > 0 {
		m.payProduct(2, uint64(n))
	}
}

// elements copies a list, and nothing of what is in it.
func elements(m *CostBudget, args []ref.Val) { m.pay(2 * length(args[0])) }

// pairs compares each element with each other.
func pairs(m *CostBudget, args []ref.Val) { m.payProduct(length(args[0]), m.payFor(args[0])) }

// products compares each element of one list with each of another.
func products(m *CostBudget, args []ref.Val) {
	first, second := m.payFor(args[0]), m.payFor(args[1])
	m.payProduct(2*length(args[0]), second)
	m.payProduct(2*length(args[1]), first)
}

func (m *CostBudget) payProduct(a, b uint64) {
	high, product := bits.Mul64(a, b)
	if high > 0 {
		product = ^uint64(0)
	}
	m.pay(product)
}

// sorted compares elements with about as many others as their number has digits.
func sorted(m *CostBudget, args []ref.Val) {
	for _, list := range args {
		m.payProduct(m.payFor(list), uint64(2*bits.Len64(length(list))))
	}
}

// insertion adds to a map that a macro makes: one entry, or those of another map.
func insertion(m *CostBudget, args []ref.Val) {
	const each = 6
	m.pay(each)
	m.payFor(args[1])
	if len(args) == 2 {
		m.pay(each * length(args[1]))
	}
}

// clock reads a part of a time. A time zone is read from a file.
func clock(m *CostBudget, args []ref.Val) {
	const zone = 1000
	if len(args) > 1 {
		m.payFor(args[1])
		m.pay(zone)
	}
}
