import SwiftSyntax

extension ExprSyntax {
    /// Whether evaluating the expression has no effect, as far as the source shows it: it consists of literals, operators, members of types, and
    /// calls of initializers, cases and members of types with arguments.
    ///
    /// A call without arguments, as in `Counter.next()`, a closure and a variable could have one, so that they are not evaluated for the
    /// description of an entity. Forcing an optional could stop the program there, unless it is that of an initializer.
    var isPure: Bool {
        if let text = self.as(StringLiteralExprSyntax.self) { return text.isPure }
        if let array = self.as(ArrayExprSyntax.self) { return array.elements.allSatisfy(\.expression.isPure) }
        if let dictionary = self.as(DictionaryExprSyntax.self) { return dictionary.isPure }
        if let tuple = self.as(TupleExprSyntax.self) { return tuple.elements.allSatisfy(\.expression.isPure) }
        if let prefix = self.as(PrefixOperatorExprSyntax.self) { return prefix.expression.isPure }
        if let unwrap = self.as(ForceUnwrapExprSyntax.self) {
            return unwrap.expression.isPure
                && unwrap.expression.as(FunctionCallExprSyntax.self)?.calledExpression.namesType == true
        }
        if let sequence = self.as(SequenceExprSyntax.self) {
            return sequence.elements.allSatisfy { $0.is(BinaryOperatorExprSyntax.self) || $0.isPure }
        }
        if let infix = self.as(InfixOperatorExprSyntax.self) {
            return infix.operator.is(BinaryOperatorExprSyntax.self) && infix.leftOperand.isPure && infix.rightOperand.isPure
        }
        if let member = self.as(MemberAccessExprSyntax.self) { return member.base.map { $0.isPure || $0.namesType } ?? true }
        if let call = self.as(FunctionCallExprSyntax.self) { return call.isPure }
        if let part = self.as(SubscriptCallExprSyntax.self) {
            return part.calledExpression.isPure && part.arguments.allSatisfy(\.expression.isPure) && part.trailingClosure == nil
        }
        switch kind {
        case .integerLiteralExpr, .floatLiteralExpr, .booleanLiteralExpr, .nilLiteralExpr: return true
        default: return false
        }
    }

    /// Whether the expression is the name of a type. Types have names in upper case.
    fileprivate var namesType: Bool {
        if let generic = self.as(GenericSpecializationExprSyntax.self) { return generic.expression.namesType }
        let name =
            self.as(DeclReferenceExprSyntax.self)?.baseName
            ?? self.as(MemberAccessExprSyntax.self).flatMap { $0.base?.namesType == true ? $0.declName.baseName : nil }
        return name?.plainName.first?.isUppercase == true
    }
}

extension StringLiteralExprSyntax {
    fileprivate var isPure: Bool {
        segments.allSatisfy { segment in
            guard case .expressionSegment(let part) = segment else { return true }
            return part.expressions.allSatisfy(\.expression.isPure)
        }
    }
}

extension DictionaryExprSyntax {
    fileprivate var isPure: Bool {
        guard case .elements(let elements) = content else { return true }
        return elements.allSatisfy { $0.key.isPure && $0.value.isPure }
    }
}

extension FunctionCallExprSyntax {
    fileprivate var isPure: Bool {
        guard trailingClosure == nil, arguments.allSatisfy(\.expression.isPure) else { return false }
        // `[Int]()` and `[String: Int]()`, whose elements are types.
        if calledExpression.is(ArrayExprSyntax.self) || calledExpression.is(DictionaryExprSyntax.self) { return true }
        if calledExpression.namesType { return true }
        guard let member = calledExpression.as(MemberAccessExprSyntax.self) else { return false }
        return ExprSyntax(member).isPure && (!arguments.isEmpty || member.declName.baseName.text == "init")
    }
}
