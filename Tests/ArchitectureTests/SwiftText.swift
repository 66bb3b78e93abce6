/// A scanner that separates Swift code from comments and strings. It does not know regex literals.
struct SwiftText {
    private let input: [UInt8]
    private var output: [UInt8]
    private var position = 0

    /// Returns the text with comments and the contents of string literals replaced by spaces. Lines and columns (in bytes)
    /// stay.
    static func blanked(_ text: String) -> String {
        var scan = SwiftText(Array(text.utf8))
        scan.code(endingAt: nil)
        return String(decoding: scan.output, as: UTF8.self)
    }

    private init(_ input: [UInt8]) {
        self.input = input
        output = input
    }

    /// Reads code to the end, or past the parenthesis that ends an interpolation.
    private mutating func code(endingAt closing: UInt8?) {
        var depth = 0
        while position < input.count {
            let byte = input[position]
            let mayStart = byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "#")
            if mayStart, at("//") {
                while position < input.count, input[position] != UInt8(ascii: "\n") { blankByte() }
            } else if mayStart, at("/*") {
                blockComment()
            } else if mayStart, let hashes = stringStart() {
                string(hashes: hashes)
            } else {
                position += 1
                guard closing != nil else { continue }
                if byte == UInt8(ascii: "(") { depth += 1 }
                if byte == UInt8(ascii: ")") {
                    if depth == 0 { return }
                    depth -= 1
                }
            }
        }
    }

    private func at(_ text: StaticString, offset: Int = 0) -> Bool {
        let start = position + offset
        guard start + text.utf8CodeUnitCount <= input.count else { return false }
        return text.withUTF8Buffer { wanted in wanted.indices.allSatisfy { wanted[$0] == input[start + $0] } }
    }

    private mutating func blankByte() {
        if input[position] != UInt8(ascii: "\n") { output[position] = UInt8(ascii: " ") }
        position += 1
    }

    private mutating func blank(_ count: Int) {
        for _ in 0..<count where position < input.count { blankByte() }
    }

    private mutating func blockComment() {
        var depth = 0
        while position < input.count {
            if at("/*") {
                depth += 1
                blank(2)
            } else if at("*/") {
                depth -= 1
                blank(2)
                if depth == 0 { return }
            } else {
                blankByte()
            }
        }
    }

    /// Returns the number of number signs before the quotation mark at this position, or nil if no string begins here.
    private func stringStart() -> Int? {
        var hashes = 0
        while position + hashes < input.count, input[position + hashes] == UInt8(ascii: "#") { hashes += 1 }
        return at("\"", offset: hashes) ? hashes : nil
    }

    private mutating func string(hashes: Int) {
        position += hashes
        let isLong = at("\"\"\"")
        position += isLong ? 3 : 1
        while position < input.count {
            if at("\\"), hasHashes(hashes, at: position + 1) {
                blank(1 + hashes)
                if at("(") {
                    blank(1)
                    interpolation()
                } else {
                    blank(1)
                }
            } else if at(isLong ? "\"\"\"" : "\""), hasHashes(hashes, at: position + (isLong ? 3 : 1)) {
                position += (isLong ? 3 : 1) + hashes
                return
            } else {
                blankByte()
            }
        }
    }

    private mutating func interpolation() {
        let start = position
        code(endingAt: UInt8(ascii: ")"))
        for index in start..<position where input[index] != UInt8(ascii: "\n") { output[index] = UInt8(ascii: " ") }
    }

    private func hasHashes(_ count: Int, at start: Int) -> Bool {
        start + count <= input.count && (start..<start + count).allSatisfy { input[$0] == UInt8(ascii: "#") }
    }
}
