/// The objects of a keyed archive in a binary property list, by number. Only what a model needs can be read.
struct KeyedArchive {
    /// An object of the archive. References to other objects are their numbers.
    enum Object {
        case bool(Bool)
        case integer(Int)
        case string(String)
        case reference(Int)
        /// The members of an encoded object that can be read.
        case members([String: Object])
        case real(Double)
        /// The numbers of the objects in a list.
        case list([Int])
        /// Anything else: data, and lists that are longer than any of a model.
        case other
    }

    private(set) var objects: [Object] = []

    /// More elements than any list of a model has.
    private static let listLimit = 1000

    private let bytes: [UInt8]
    private let offsets: [Int]
    private let referenceSize: Int

    /// Returns nil for bytes that are not such an archive.
    init?(_ bytes: [UInt8]) {
        self.bytes = bytes
        guard bytes.count >= 40, bytes.starts(with: Array("bplist00".utf8)) else { return nil }
        let trailer = bytes.count - 32
        let offsetSize = Int(bytes[trailer + 6])
        referenceSize = Int(bytes[trailer + 7])
        guard (1...8).contains(offsetSize), (1...8).contains(referenceSize),
            let count = Self.number(bytes, start: trailer + 8, size: 8),
            let top = Self.number(bytes, start: trailer + 16, size: 8),
            let table = Self.number(bytes, start: trailer + 24, size: 8), table < trailer,
            count <= (trailer - table) / offsetSize, top < count
        else { return nil }
        offsets = (0..<count).compactMap { Self.number(bytes, start: table + $0 * offsetSize, size: offsetSize) }
        // A few bytes can name a large object many times.
        var budget = 16 * bytes.count + 1 << 24
        budget -= cost(top)
        guard offsets.count == count, budget >= 0, let root = dictionary(top), let list = root["$objects"],
            let members = array(list)
        else { return nil }
        for member in members {
            budget -= cost(member)
            if budget < 0 { return nil }
        }
        objects = members.map { object($0) }
    }

    /// Returns the object that a member of another object refers to.
    func target(_ members: [String: Object], _ name: String) -> Object? {
        guard case .reference(let number)? = members[name] else { return nil }
        return objects.indices.contains(number) ? objects[number] : nil
    }

    func text(_ members: [String: Object], _ name: String) -> String? {
        guard case .string(let text)? = target(members, name), text != "$null" else { return nil }
        return text
    }

    /// Returns the objects of a member that is an array or a set.
    func elements(_ members: [String: Object], _ name: String) -> [Object] {
        guard case .members(let list)? = target(members, name) else { return [] }
        return elements(of: list)
    }

    /// Returns the objects of an array or a set from its members.
    func elements(of list: [String: Object]) -> [Object] {
        guard case .list(let numbers)? = list["NS.objects"] else { return [] }
        return numbers.map { objects.indices.contains($0) ? objects[$0] : .other }
    }

    // MARK: The property list

    /// Returns an unsigned number, the highest byte first; nil if it is beyond the end or does not fit.
    private static func number(_ bytes: [UInt8], start: Int, size: Int) -> Int? {
        guard start >= 0, size <= 8, start <= bytes.count - size else { return nil }
        let value = bytes[start..<start + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Int(exactly: value)
    }

    /// Returns the kind of a value, its count, and the position of its content.
    private func header(_ number: Int) -> (kind: UInt8, count: Int, start: Int)? {
        guard offsets.indices.contains(number), bytes.indices.contains(offsets[number]) else { return nil }
        let start = offsets[number]
        let marker = bytes[start]
        guard marker & 0x0F == 0x0F, marker >> 4 > 3 else { return (marker >> 4, Int(marker & 0x0F), start + 1) }
        guard bytes.indices.contains(start + 1), bytes[start + 1] >> 4 == 1, bytes[start + 1] & 0x0F <= 3 else { return nil }
        let size = 1 << Int(bytes[start + 1] & 0x0F)
        return Self.number(bytes, start: start + 2, size: size).map { (marker >> 4, $0, start + 2 + size) }
    }

    private func references(_ start: Int, _ count: Int) -> [Int]? {
        guard count <= (bytes.count - start) / referenceSize else { return nil }
        let found = (0..<count).compactMap { Self.number(bytes, start: start + $0 * referenceSize, size: referenceSize) }
        return found.count == count ? found : nil
    }

    private func array(_ number: Int) -> [Int]? {
        guard let (kind, count, start) = header(number), kind == 0xA else { return nil }
        return references(start, count)
    }

    /// Returns the numbers of a dictionary's values by key.
    private func dictionary(_ number: Int) -> [String: Int]? {
        guard let (kind, count, start) = header(number), kind == 0xD, count <= bytes.count,
            let found = references(start, 2 * count)
        else { return nil }
        var values: [String: Int] = [:]
        for place in 0..<count {
            if case .string(let key) = plain(found[place]) { values[key] = found[count + place] }
        }
        return values
    }

    /// Returns about how many bytes and values are read for an object.
    private func cost(_ number: Int) -> Int {
        guard let (kind, count, start) = header(number), count <= bytes.count else { return 1 }
        guard kind == 0xD, let found = references(start, 2 * count) else { return 1 + count }
        return found.reduce(1) { $0 + 1 + (header($1).map { min($0.count, bytes.count) } ?? 0) }
    }

    private func object(_ number: Int) -> Object {
        guard let values = dictionary(number) else { return plain(number) }
        return .members(values.mapValues { plain($0) })
    }

    /// Returns a value that contains no others, besides references to objects.
    private func plain(_ number: Int) -> Object {
        guard let (kind, count, start) = header(number) else { return .other }
        switch kind {
        case 0x0 where count == 8 || count == 9: return .bool(count == 9)
        case 0x1:
            // Negative numbers have eight bytes.
            guard count <= 3, start <= bytes.count - (1 << count) else { return .other }
            let value = bytes[start..<start + (1 << count)].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return .integer(Int(truncatingIfNeeded: value))
        case 0x2 where count == 2:
            return Self.number(bytes, start: start, size: 4).map { .real(Double(Float(bitPattern: UInt32($0)))) } ?? .other
        case 0x2 where count == 3:
            guard start <= bytes.count - 8 else { return .other }
            return .real(Double(bitPattern: bytes[start..<start + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }))
        case 0x5:
            guard start <= bytes.count, count <= bytes.count - start else { return .other }
            return String(validating: bytes[start..<start + count], as: UTF8.self).map { .string($0) } ?? .other
        case 0x6:
            guard start <= bytes.count, count <= (bytes.count - start) / 2 else { return .other }
            let units = (0..<count).map { UInt16(bytes[start + 2 * $0]) << 8 | UInt16(bytes[start + 2 * $0 + 1]) }
            return String(validating: units, as: UTF16.self).map { .string($0) } ?? .other
        case 0xA:
            guard count <= Self.listLimit, let found = references(start, count) else { return .other }
            let targets = found.compactMap { reference in
                if case (0x8, let size, let start)? = header(reference), size < 8 {
                    Self.number(bytes, start: start, size: size + 1)
                } else {
                    nil
                }
            }
            return targets.count == count ? .list(targets) : .other
        case 0x8 where count < 8: return Self.number(bytes, start: start, size: count + 1).map { .reference($0) } ?? .other
        default: return .other
        }
    }
}
