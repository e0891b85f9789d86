package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// visit notes what can be changed at a node.
func (f *finder) visit(n ast.Node) {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.condition(n.Cond, true)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond, false) // for ever tells nothing
		}
	case *ast.CaseClause:
		f.caseClause(n)
	case *ast.CommClause:
		f.emptied(n.Body)
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.AssignStmt:
		f.booleans(n.Rhs)
	case *ast.CallExpr:
		f.booleans(n.Args)
		f.extreme(n)
	case *ast.KeyValueExpr:
		f.booleans([]ast.Expr{n.Value})
	}
	if s, ok := n.(ast.Stmt); ok && f.listed() {
		f.statement(s)
	}
	if e, ok := n.(ast.Expr); ok && !f.constantContext() {
		f.expression(e)
	}
}

// condition makes a truth value always true, and always false.
func (f *finder) condition(e ast.Expr, both bool) {
	if !f.plainBool(e) {
		return
	}
	if both {
		f.replace(e, "true", func(id int, inner string) string { return fmt.Sprintf("(mutated__(%d) || (%s))", id, inner) })
	}
	f.replace(e, "false", func(id int, inner string) string { return fmt.Sprintf("(!mutated__(%d) && (%s))", id, inner) })
}

func (f *finder) booleans(all []ast.Expr) {
	for _, e := range all {
		if f.info.Types[e].IsValue() {
			f.condition(e, true)
		}
	}
}

// plainBool says whether an expression is a truth value that is worked out.
func (f *finder) plainBool(e ast.Expr) bool {
	t, ok := f.info.Types[e]
	if !ok || t.Value != nil {
		return false
	}
	basic, ok := t.Type.(*types.Basic)
	return ok && basic.Info()&types.IsBoolean != 0
}

// caseClause makes the conditions of a switch without a value true and false, and
// empties the cases of any.
func (f *finder) caseClause(c *ast.CaseClause) {
	if s, ok := f.parent(2).(*ast.SwitchStmt); ok && s.Tag == nil {
		for _, e := range c.List {
			f.condition(e, true)
		}
		return
	}
	f.emptied(c.Body)
}

// emptied leaves out what is done in a case.
func (f *finder) emptied(body []ast.Stmt) {
	if len(body) == 0 || len(body) == 1 && removable(body[0]) {
		return
	}
	last := body[len(body)-1]
	if branch, ok := last.(*ast.BranchStmt); ok && branch.Tok == token.FALLTHROUGH {
		return
	}
	f.add(body[0].Pos(), last.End(), "", leftOut)
}

func leftOut(id int, inner string) string { return fmt.Sprintf("if !mutated__(%d) { %s }", id, inner) }

// listed says whether what is visited is a statement in a row of them.
func (f *finder) listed() bool {
	switch f.parent(1).(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// statement leaves one out.
func (f *finder) statement(s ast.Stmt) {
	if c, ok := f.parent(1).(*ast.CommClause); ok && c.Comm == s {
		return
	}
	if removable(s) {
		f.add(s.Pos(), s.End(), "", leftOut)
	}
}

func removable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		called, ok := call.Fun.(*ast.Ident)
		return !ok || called.Name != "panic"
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.SendStmt:
		return true
	case *ast.BranchStmt:
		return s.Tok == token.BREAK || s.Tok == token.CONTINUE
	}
	return false
}

// returned changes the truth values that are returned, and forgets the error.
func (f *finder) returned(r *ast.ReturnStmt) {
	f.booleans(r.Results)
	signature := f.signature()
	if len(r.Results) == 0 || signature == nil || signature.Results().Len() != len(r.Results) {
		return
	}
	last := r.Results[len(r.Results)-1]
	result := signature.Results().At(len(r.Results) - 1).Type()
	if !types.Identical(result, types.Universe.Lookup("error").Type()) || f.info.Types[last].IsNil() {
		return
	}
	f.replace(last, "nil", func(id int, inner string) string { return fmt.Sprintf("dropped__(%d, %s)", id, inner) })
}

// signature is that of the innermost function.
func (f *finder) signature() *types.Signature {
	for _, n := range slices.Backward(f.stack) {
		var t types.Type
		switch n := n.(type) {
		case *ast.FuncLit:
			t = f.info.Types[n].Type
		case *ast.FuncDecl:
			t = f.info.Defs[n.Name].Type()
		}
		if s, ok := t.(*types.Signature); ok {
			return s
		}
	}
	return nil
}

// constantContext says whether an expression stands where it has to be constant, or
// is part of a constant that is changed as a whole.
func (f *finder) constantContext() bool {
	for i := 1; i < len(f.stack); i++ {
		switch p := f.parent(i).(type) {
		case *ast.GenDecl:
			if p.Tok == token.CONST {
				return true
			}
		case *ast.ArrayType:
			return true
		case *ast.KeyValueExpr:
			if p.Key == f.parent(i-1) {
				return true
			}
		case ast.Expr:
			if f.isDuration(p) && f.info.Types[p].Value != nil {
				return true
			}
		}
	}
	return false
}

// besideError says whether a value is returned together with an error: it has no meaning.
func (f *finder) besideError() bool {
	r, ok := f.parent(1).(*ast.ReturnStmt)
	if !ok || len(r.Results) < 2 {
		return false
	}
	last := f.info.Types[r.Results[len(r.Results)-1]]
	return !last.IsNil() && last.Type != nil && types.Implements(last.Type, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
}

func (f *finder) isDuration(e ast.Expr) bool {
	t := f.info.Types[e].Type
	return t != nil && types.TypeString(t, nil) == "time.Duration"
}

// expression changes operators and numbers.
func (f *finder) expression(e ast.Expr) {
	typed := f.info.Types[e]
	switch e := e.(type) {
	case *ast.UnaryExpr:
		if f.isDuration(e) && typed.Value != nil {
			f.spans(e)
		}
	case *ast.BinaryExpr:
		if f.isDuration(e) && typed.Value != nil {
			f.spans(e)
			return
		}
		f.binary(e)
	case *ast.BasicLit:
		if e.Kind == token.INT && !f.isDuration(e) && !f.besideError() { // a nanosecond is nothing
			f.swap(e, e.Value+"+1")
		}
	case *ast.SelectorExpr:
		if f.isConstant(e.Sel) && f.isDuration(e) {
			f.spans(e)
		}
	case *ast.Ident:
		f.constant(e)
	}
}

func (f *finder) isConstant(name *ast.Ident) bool {
	_, constant := f.info.Uses[name].(*types.Const)
	return constant
}

// constant changes one of the package's own where it is used: nothing can be switched where
// it is declared. What is handed on as it is is a mode or a room, and no number of a rule.
func (f *finder) constant(name *ast.Ident) {
	if _, selected := f.parent(1).(*ast.SelectorExpr); selected || !f.isConstant(name) {
		return
	}
	if f.isDuration(name) {
		f.spans(name)
		return
	}
	_, handed := f.parent(1).(*ast.CallExpr)
	if basic, plain := f.info.Types[name].Type.(*types.Basic); !handed && plain && basic.Info()&types.IsInteger != 0 {
		f.swap(name, name.Name+"+1")
	}
}

// spans makes a constant time much longer, and much shorter: to notice less, a test
// would have to measure.
func (f *finder) spans(e ast.Expr) {
	if f.text(e) == "0" {
		return
	}
	f.swap(e, "("+f.text(e)+")*16")
	f.swap(e, "("+f.text(e)+")/16")
}

// swap puts an expression of the same type in the place of one.
func (f *finder) swap(e ast.Expr, text string) {
	typ := f.typeText(f.src, types.Default(f.info.Types[e].Type))
	if typ == "" {
		return
	}
	f.replace(e, text, func(id int, inner string) string {
		return fmt.Sprintf("func() %s { if mutated__(%d) { return %s }; return %s }()", typ, id, text, inner)
	})
}

// choose is swap for truth values, whose type is plain.
func (f *finder) choose(e ast.Expr, text string) {
	f.replace(e, text, func(id int, inner string) string {
		return fmt.Sprintf("(mutated__(%d) && (%s) || !mutated__(%d) && (%s))", id, text, id, inner)
	})
}

func (f *finder) binary(e *ast.BinaryExpr) {
	left, right := f.operand(e.X), f.operand(e.Y)
	with := func(op token.Token) string { return left + " " + op.String() + " " + right }
	border := map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
	turned := map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL}
	switch e.Op {
	case token.LAND, token.LOR:
		other := token.LAND
		if e.Op == token.LAND {
			other = token.LOR
		}
		f.choose(e, with(other))
		f.choose(e, left)
		f.choose(e, right)
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.choose(e, with(border[e.Op]))
	case token.ADD, token.SUB, token.MUL, token.QUO:
		if f.number(e) {
			f.swap(e, with(turned[e.Op]))
		}
	case token.OR, token.AND, token.AND_NOT:
		f.swap(e, left)
		if e.Op != token.AND_NOT {
			f.swap(e, right)
		}
	}
}

// operand is the text of an operand that keeps together whatever comes beside it.
func (f *finder) operand(e ast.Expr) string {
	if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
		return "(" + f.text(e) + ")"
	}
	return f.text(e)
}

// number says whether an expression is one that is worked out.
func (f *finder) number(e ast.Expr) bool {
	t := f.info.Types[e]
	basic, ok := t.Type.Underlying().(*types.Basic)
	return ok && t.Value == nil && basic.Info()&types.IsNumeric != 0
}

// extreme takes the larger for the smaller, and the other way round.
func (f *finder) extreme(call *ast.CallExpr) {
	called, ok := call.Fun.(*ast.Ident)
	if !ok {
		return
	}
	if _, ok := f.info.Uses[called].(*types.Builtin); !ok {
		return
	}
	if other := map[string]string{"min": "max", "max": "min"}[called.Name]; other != "" {
		f.swap(call, other+f.text(call)[len(called.Name):])
	}
}
