/// Decompresses raw deflate data (RFC 1951), the form of the model in Core Data's files.
struct Inflate {
    private let input: [UInt8]
    private var position = 0
    private var bits: UInt32 = 0
    private var bitCount = 0
    private var output: [UInt8] = []
    private let limit: Int

    /// Returns the decompressed bytes, or nil for data that is not deflated or is larger than `limit` bytes.
    static func bytes(_ input: [UInt8], limit: Int) -> [UInt8]? {
        var inflate = Inflate(input: input, limit: limit)
        return inflate.run() ? inflate.output : nil
    }

    private init(input: [UInt8], limit: Int) {
        self.input = input
        self.limit = limit
    }

    private mutating func run() -> Bool {
        while true {
            guard let isLast = take(1), let kind = take(2) else { return false }
            let isSound =
                switch kind {
                case 0: copyStored()
                case 1: readBlock(.fixedLengths, .fixedDistances)
                case 2: readTables().map { readBlock($0, $1) } ?? false
                default: false
                }
            if !isSound { return false }
            if isLast == 1 { return true }
        }
    }

    /// Returns the next bits, the lowest first; nil at the end of the input.
    private mutating func take(_ count: Int) -> Int? {
        while bitCount < count {
            guard position < input.count else { return nil }
            bits |= UInt32(input[position]) << UInt32(bitCount)
            position += 1
            bitCount += 8
        }
        let value = bits & ((1 << UInt32(count)) - 1)
        bits >>= UInt32(count)
        bitCount -= count
        return Int(value)
    }

    private mutating func copyStored() -> Bool {
        bits = 0
        bitCount = 0
        guard position + 4 <= input.count else { return false }
        let count = Int(input[position]) | Int(input[position + 1]) << 8
        position += 4
        guard position + count <= input.count, output.count + count <= limit else { return false }
        output += input[position..<position + count]
        position += count
        return true
    }

    // MARK: Compressed blocks

    /// A Huffman code, as the number of codes per length and the symbols in the order of their codes.
    struct Code {
        var counts: [Int]
        var symbols: [Int]

        init(lengths: [Int]) {
            counts = Array(repeating: 0, count: 16)
            for length in lengths { counts[length] += 1 }
            counts[0] = 0
            symbols = lengths.indices.filter { lengths[$0] > 0 }.sorted { (lengths[$0], $0) < (lengths[$1], $1) }
        }

        static let fixedLengths = Code(
            lengths: (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 })
        static let fixedDistances = Code(lengths: Array(repeating: 5, count: 30))
    }

    private mutating func symbol(_ code: Code) -> Int? {
        var value = 0
        var first = 0
        var index = 0
        for length in 1...15 {
            guard let bit = take(1) else { return nil }
            value |= bit
            let count = code.counts[length]
            if value - first < count {
                let place = index + value - first
                return code.symbols.indices.contains(place) ? code.symbols[place] : nil
            }
            index += count
            first = (first + count) << 1
            value <<= 1
        }
        return nil
    }

    private static let lengthBases = [
        3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258,
    ]
    private static let lengthBits = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0]
    private static let distanceBases = [
        1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193,
        12289, 16385, 24577,
    ]

    private mutating func readBlock(_ lengths: Code, _ distances: Code) -> Bool {
        while true {
            guard let symbol = symbol(lengths) else { return false }
            if symbol == 256 { return true }
            if symbol < 256 {
                guard output.count < limit else { return false }
                output.append(UInt8(symbol))
                continue
            }
            let place = symbol - 257
            guard Self.lengthBases.indices.contains(place), let more = take(Self.lengthBits[place]),
                let code = self.symbol(distances), Self.distanceBases.indices.contains(code),
                let further = take(max(0, code / 2 - 1))
            else { return false }
            let count = Self.lengthBases[place] + more
            let distance = Self.distanceBases[code] + further
            guard distance <= output.count, output.count + count <= limit else { return false }
            for _ in 0..<count { output.append(output[output.count - distance]) }
        }
    }

    private static let orderOfLengths = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]

    /// Reads the two codes at the beginning of a block.
    private mutating func readTables() -> (Code, Code)? {
        guard let literals = take(5), let distances = take(5), let count = take(4), literals <= 29 else { return nil }
        var lengths = Array(repeating: 0, count: 19)
        for place in 0..<count + 4 {
            guard let length = take(3) else { return nil }
            lengths[Self.orderOfLengths[place]] = length
        }
        let code = Code(lengths: lengths)
        let total = literals + 257 + distances + 1
        var found: [Int] = []
        while found.count < total {
            guard let symbol = symbol(code) else { return nil }
            switch symbol {
            case 16:
                guard let last = found.last, let more = take(2) else { return nil }
                found += Array(repeating: last, count: 3 + more)
            case 17:
                guard let more = take(3) else { return nil }
                found += Array(repeating: 0, count: 3 + more)
            case 18:
                guard let more = take(7) else { return nil }
                found += Array(repeating: 0, count: 11 + more)
            default: found.append(symbol)
            }
        }
        guard found.count == total else { return nil }
        return (Code(lengths: Array(found[..<(literals + 257)])), Code(lengths: Array(found[(literals + 257)...])))
    }
}
