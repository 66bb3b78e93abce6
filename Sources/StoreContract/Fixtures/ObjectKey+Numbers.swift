import StoreModel

/// Numbers as keys, for checks and tests, which count objects.
extension ObjectKey {
    package init(_ number: Int) { self.init(rawValue: UInt64(number)) }

    package static func random(in keys: Range<ObjectKey>, using random: inout some RandomNumberGenerator) -> ObjectKey {
        ObjectKey(rawValue: .random(in: keys.lowerBound.rawValue..<keys.upperBound.rawValue, using: &random))
    }
}
