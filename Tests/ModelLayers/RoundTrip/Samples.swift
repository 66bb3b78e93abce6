import StrataSwiftData

/// Values for properties, which differ from number to number if the type has enough of them.
struct Samples {
    /// The names and raw values of the cases in the sources of a layer, for enums that do not list their cases.
    let words: [String]

    /// Returns a value of a type; nil if none can be made.
    func value<V>(_ type: V.Type, number: Int) -> V? {
        if let known = known(type, number: number) { return known }
        if let optional = type as? any OptionalSample.Type { return optional.make(number, from: self).flatMap { $0 as? V } }
        if let cases = type as? any CaseIterable.Type { return element(of: cases, number: number) as? V }
        if let raw = type as? any RawRepresentable.Type, let value = rawValue(raw, number: number) { return value as? V }
        guard let decodable = type as? any Decodable.Type else { return nil }
        return try? decodable.init(from: SampleDecoder(samples: self, number: number)) as? V
    }

    private func known<V>(_ type: V.Type, number: Int) -> V? {
        let value: Any? =
            switch type {
            case is String.Type: "text \(number) ü"
            case is Bool.Type: number % 2 == 1
            case is Double.Type: Double(number) + 0.25
            case is Float.Type: Float(number) + 0.5
            case is CGFloat.Type: CGFloat(number) + 0.75
            case is Decimal.Type: Decimal(number) / 100
            case is Date.Type: Date(timeIntervalSinceReferenceDate: Double(number) * 86400.125)
            case is Data.Type: Data("bytes \(number)".utf8)
            case is UUID.Type: UUID(uuidString: String(format: "00000000-0000-4000-8000-%012d", number))
            case is URL.Type: URL(string: "https://example.com/\(number)?a=b")
            case let integer as any FixedWidthInteger.Type: integer.init(truncatingIfNeeded: number)
            default: nil
            }
        // A cast of nil to an optional type would succeed.
        return value.flatMap { $0 as? V }
    }

    private func element<C: CaseIterable>(of type: C.Type, number: Int) -> C? {
        let all = Array(type.allCases)
        return all.isEmpty ? nil : all[number % all.count]
    }

    private func rawValue<R: RawRepresentable>(_ type: R.Type, number: Int) -> R? {
        let values: [R.RawValue] =
            words as? [R.RawValue] ?? (-10...1000).compactMap { value(R.RawValue.self, number: $0) }
        let all = values.compactMap(R.init)
        return all.isEmpty ? nil : all[number % all.count]
    }
}

/// An optional, whose wrapped type is known at run time only.
protocol OptionalSample {
    static var wrapped: Any.Type { get }
    static var empty: Any { get }
    static func make(_ number: Int, from samples: Samples) -> Any?
}

extension Optional: OptionalSample {
    static var wrapped: Any.Type { Wrapped.self }
    static var empty: Any {
        let value: Wrapped? = nil
        return value as Any
    }
    static func make(_ number: Int, from samples: Samples) -> Any? { samples.value(Wrapped.self, number: number) }
}

/// An array, whose element is known at run time only.
protocol ArraySample {
    static var element: Any.Type { get }
}

extension Array: ArraySample {
    static var element: Any.Type { Element.self }
}

/// A key path of a property with a setter, whose types are known at run time only.
protocol WritableProperty {
    /// nil if the property cannot be nil.
    var emptyValue: Any? { get }
    func sample(_ samples: Samples, number: Int) -> Any?
    func value(of object: Any) -> Any
    /// Returns false if the value is not of the property's type.
    func set(_ value: Any, on object: Any) -> Bool
}

extension ReferenceWritableKeyPath: WritableProperty {
    var emptyValue: Any? { (Value.self as? any OptionalSample.Type)?.empty }
    func sample(_ samples: Samples, number: Int) -> Any? { samples.value(Value.self, number: number).map { $0 as Any } }
    func value(of object: Any) -> Any { object[keyPath: self as AnyKeyPath] as Any }
    func set(_ value: Any, on object: Any) -> Bool {
        guard let object = object as? Root, let value = value as? Value else { return false }
        object[keyPath: self] = value
        return true
    }
}
