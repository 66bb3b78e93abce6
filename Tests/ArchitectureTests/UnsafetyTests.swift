import Testing

extension SourceFile {
    /// The lines that turn off a check of the compiler without a comment nearby that says why. Lines are counted from 1.
    var unreasonedUnsafeLines: [Int] {
        // The words of a reason for sharing: it names what keeps two threads apart.
        let sharingReason =
            /(?i)unchecked|sendable|because|lock|mutex|atomic|immutable|thread|executor|queue|isolat|seal|actor|once|own|purpose/
        let unsafety = /\bunsafe(?:Downcast|BitCast)\(|^\s*(?:\w+\s+)*(?:let|var) \w+: Unsafe\w*Pointer/
        return codeLines(with: "@unchecked", "unsafe", "Unsafe").filter { number, code in
            if code.holds("@unchecked Sendable") || code.holds("nonisolated(unsafe)") {
                return !hasComment(near: number - 1, matching: sharingReason)
            }
            if code.contains(unsafety) {
                return !hasComment(near: number - 1, matching: /./)
            }
            return false
        }.map(\.number)
    }

    private func hasComment(near index: Int, matching reason: Regex<Substring>) -> Bool {
        lines[max(0, index - 8)...min(lines.count - 1, index + 2)].contains { line in
            guard let start = line.firstRange(of: "//") else { return false }
            return line[start.upperBound...].contains(reason)
        }
    }
}

@Suite struct UnsafetyTests {
    @Test func everythingUncheckedSaysWhyItIsRight() {
        for file in Repository.swiftFiles where file.name != "SourceScanTests.swift" {
            for line in file.unreasonedUnsafeLines {
                Issue.record("\(file.path):\(line): say in a comment, at most 8 lines above or 2 below, why this is right")
            }
        }
    }
}
