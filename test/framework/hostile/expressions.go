// Package hostile has inputs that an attacker could send to keep Penstock busy. Tests prove that
// their cost is bounded; benchmarks measure it.
package hostile

import (
	"fmt"
	"strings"
)

// Object returns an object for Expressions, with large texts, maps and lists.
func Object() map[string]any {
	many, list, texts := map[string]any{}, []any{}, []any{}
	for i := range 5000 {
		many[fmt.Sprint("key", i)] = "v"
		list, texts = append(list, int64(i)), append(texts, fmt.Sprint("x", i))
	}
	return map[string]any{
		"kind": "Widget", "metadata": map[string]any{"name": "w", "labels": map[string]any{"a": "b"}},
		"spec":   map[string]any{"replicas": int64(3), "ratio": 1.5, "on": true, "ports": []any{map[string]any{"port": int64(80), "name": "http"}}},
		"status": map[string]any{"ready": int64(3), "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		"data": map[string]any{
			"big": strings.Repeat("a", 1_000_000), "same": strings.Repeat("a", 1_000_000), "long": strings.Repeat("a", 10_000),
			"half": strings.Repeat("a", 1000) + "b", "pattern": strings.Repeat("x{1000}", 20), "url": "http://x/" + strings.Repeat("a?b=c&", 1000),
		},
		"many": many, "list": list, "texts": texts,
	}
}

// Loop repeats an expression ten times for each level, with variables i0, i1 and so on.
func Loop(body string, levels int) string {
	for i := range levels {
		body = fmt.Sprintf("[0,1,2,3,4,5,6,7,8,9].all(i%d,%s)", i, body)
	}
	return body
}

// Expressions returns expressions that would take hours, or all memory, with only the library's
// cost limit.
func Expressions() map[string]string {
	return map[string]string{
		"Loop": Loop("true", 7), "Selects": Loop("self.spec.replicas==3", 7), "Errors": Loop("self.missing==1||true", 7), "ShortCircuits": Loop("true||self.spec.on||self.spec.on", 7),
		"Pattern": Loop("!'x'.matches(self.data.pattern+string(i0)+string(i1))", 6), "Matching": Loop("!self.data.half.matches('(a?){30}a{30}c')", 6), "FindAll": Loop("self.data.half.findAll('a').size()>0", 6),
		"EqualTexts": Loop("self.data.big==self.data.same", 6), "UnequalTexts": Loop("self.data.big!='a'||self.data.same=='b'", 7), "EqualObjects": Loop("self==self", 6), "Size": Loop("self.data.big.size()>3", 6),
		"CharAt": Loop("self.data.big.charAt(0)=='a'", 6), "IndexOf": Loop("self.data.big.indexOf(self.data.same+'b')==-1", 6), "LastIndexOf": Loop("self.data.half.lastIndexOf('ab')>=0", 6),
		"Replace": "self.data.big.replace('',self.data.same).size()>0", "Join": "self.data.big.split('').join(self.data.same).size()>0", "Split": Loop("self.data.long.split('').size()>0", 6),
		"Format": Loop("'%s'.format([self]).size()>0", 6), "Precision": "'%.999999999f'.format([1.5]).size()>0", "Formats": Loop("'%s %d %f %e'.format(['a',1,1.5,1.5]).size()>0", 6),
		"Range": "lists.range(10000000000).size()>0", "Ranges": Loop("lists.range(1000).size()>0", 6), "Distinct": "self.list.distinct().size()>0", "Sort": Loop("self.texts.sort().size()>0", 6), "Sets": Loop("sets.contains(self.list,self.list)", 6),
		"Lists": "[[0]]" + strings.Repeat(".map(x,x+x)", 40) + "==[]", "Nested": "[['a']]" + strings.Repeat(".map(x,[x,x])", 40) + "==[]", "Texts": "['a']" + strings.Repeat(".map(x,x+x)", 40) + "==[]",
		"Key": Loop("self[?self.data.big].hasValue()==false", 6), "MapKey": Loop("{self.data.big:1}.size()==1", 6), "FirstOfMap": Loop("self.many.exists(k,true)", 6), "InMap": Loop("!(self.data.big in self.many)", 6), "InList": Loop("!('x' in self.texts)", 6),
		"Maps": Loop("self.many.transformMap(k,v,v).size()>0", 6), "MapList": Loop("self.many.map(k,k).size()>0", 6), "Filter": Loop("self.list.filter(x,x>=0).size()>0", 6), "Add": Loop("self.list+self.list!=[]", 6),
		"Quantity": Loop("quantity('12345678901234567890123').add(quantity('98765432109876543210987.123456')).isGreaterThan(quantity('1'))", 6), "Quantities": Loop("quantity('1e1000').isGreaterThan(quantity('1e-1000'))||true", 6),
		"URL":  Loop("url(self.data.url).getQuery().size()>=0", 6),
		"Zone": Loop("timestamp('2020-01-01T00:00:00Z').getHours('America/New_York')!=99", 6), "Parse": Loop("int(self.data.big)==1||true", 6), "Validate": Loop("!format.uri().validate(self.data.url).hasValue()||true", 6),
		"IndexByObject": Loop("self[self]==1||true", 5), "Semver": Loop("semver('1.2.3-'+self.data.long).isLessThan(semver('1.2.3-'+self.data.long+'b'))", 6),
	}
}

// Compilations returns expressions, or parts of them, that take long to compile for their length.
func Compilations() map[string]string {
	return map[string]string{
		"Or": "true" + strings.Repeat("||!true", 550), "Sum": "0" + strings.Repeat("+1", 240) + ">0", "List": "[" + strings.Repeat("1,", 2000) + "1]==[]", "Map": "{" + strings.Repeat("1:1,", 1000) + "1:1}=={}",
		"Undeclared": strings.Repeat("a.b.c.d.e.f||", 300) + "a", "Maps": "self" + strings.Repeat(".map(x,x)", 4) + "==[]", "Nested": strings.Repeat("[1].map(x,", 4) + "x" + strings.Repeat(")", 4) + "==[]",
		"Loops": strings.Repeat("self.all(x,x==1)&&", 16) + "true", "Conditions": strings.Repeat("true?true:", 200) + "true", "Calls": strings.Repeat("size(", 100) + "[]" + strings.Repeat(")", 100) + "==0",
		"Brackets": strings.Repeat("(", 200) + strings.Repeat("a ", 30), "Signs": strings.Repeat("@", 300), "Overloads": strings.Repeat("1.0+", 200) + "'a'==1",
		"Classes": `self.a.matches('(?i)[\\pL\\PN]')`, "Pattern": "self.a.matches('a{330}')",
	}
}
