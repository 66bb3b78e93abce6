// Prints a program that runs the round trip of a model layer: its models, by the type or extension that they are declared in, which is a
// versioned schema or nothing; their initializers; and the names and raw values of cases, for enums that do not list their cases.
//
//     Scan OWNER/NAME FILE ...

import Foundation

struct ScannedModel {
    let outer: String
    let name: String
    var initializers: [String] = []
}

/// The code without comments and the contents of texts.
func code(of text: String) -> String {
    text.replacing(/\/\*[\s\S]*?\*\/|\/\/[^\n]*|"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*"/, with: "")
}

/// Returns the models in code, in the order of their declaration.
func models(in code: String) -> [ScannedModel] {
    var found: [ScannedModel] = []
    var types: [(name: String, model: Int?)] = []
    var declared: (name: String, model: Int?)?
    var isModel = false
    for token in code.matches(of: /@Model\b|\b(?:class|struct|enum|extension|actor|protocol)\s+([A-Z][\w.]*)|\binit\s*\(|[{}]/) {
        switch token.0.prefix(1) {
        case "@": isModel = true
        case "{":
            types.append(declared ?? ("", nil))
            declared = nil
        case "}": _ = types.popLast()
        default:
            if let name = token.1 {
                declared = (String(name), nil)
                guard isModel else { continue }
                found.append(ScannedModel(outer: types.map { $0.name + "." }.joined(), name: String(name)))
                declared?.model = found.count - 1
                isModel = false
            } else if let model = types.last?.model, !isCall(code[..<token.range.lowerBound]) {
                found[model].initializers.append(labels(of: code[token.range.upperBound...]))
            }
        }
    }
    return found
}

/// Whether `init` after this code calls an initializer, or declares a private one.
func isCall(_ before: Substring) -> Bool { before.last == "." || before.hasSuffix("private ") }

/// Returns the labels of parameters, `title:_:`, from the code after the opening parenthesis.
func labels(of parameters: Substring) -> String {
    var depth = 0
    var isStart = true
    var labels = ""
    for token in parameters.matches(of: /\w+|[(\[<{]|[)\]}]|->|>|,|@\w+/) {
        switch token.0 {
        case "(", "[", "<", "{": depth += 1
        case ")" where depth == 0: return labels
        case ")", "]", "}", ">": depth -= 1
        case "," where depth == 0: isStart = true
        case let word where isStart && word.first != "@" && word != "->":
            labels += word + ":"
            isStart = false
        default: break
        }
    }
    return labels
}

/// Returns the words of lines that declare cases.
func words(in text: String) -> [Substring] {
    text.split(whereSeparator: \.isNewline).filter { $0.starts(with: /\s*(?:indirect\s+)?case\b/) && !$0.hasSuffix(":") }
        .flatMap { $0.matches(of: /"([^"\\]*)"|\w+/).map { $0.1 ?? $0.0 } }
}

let texts = try CommandLine.arguments.dropFirst(2).map { try String(contentsOfFile: $0, encoding: .utf8) }
let all = texts.flatMap { models(in: code(of: $0)) }
print("import RoundTrip\n\ntry await roundTrip(\n    \"\(CommandLine.arguments[1])\",\n    schemas: [")
for schema in Dictionary(grouping: all, by: \.outer).sorted(by: { $0.key < $1.key }).map(\.value) {
    print("        [\(schema.map { "\($0.outer)\($0.name).self" }.joined(separator: ", "))],")
}
print("    ],\n    words: \(Set(texts.flatMap(words)).sorted().map(String.init))\n) { writer in")
for model in all {
    for labels in model.initializers where labels != "from:" {
        let initializer = labels.isEmpty ? "{ \(model.outer)\(model.name)() }" : "\(model.outer)\(model.name).init(\(labels))"
        print("    writer.add(\"\(model.outer)\(model.name)(\(labels))\", \(initializer))")
    }
}
print("}")
