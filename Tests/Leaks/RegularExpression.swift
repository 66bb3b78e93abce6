// leak:StringProcessing5RegexVA2A03AnyC6OutputV
// An expression that is made from text holds its parts in indirect enums, as the program IndirectEnum does. The sanitizer does not find
// them, here those of an expression in a global variable.

@MainActor var expressions: [Regex<AnyRegexOutput>] = []

@main struct Program {
    @MainActor static func main() throws {
        expressions.append(try Regex("[a-z]+(?:\\.[a-z]+)*"))
        print(try expressions[0].wholeMatch(in: "a.b") != nil)
    }
}
