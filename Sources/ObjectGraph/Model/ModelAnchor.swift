@_spi(Reflection) import Swift

/// A typed model's link to its managed object. It clears the object's reference to the model when the model is released.
///
/// A model stores its anchor in a property whose name ends with `modelAnchor`, and sets relationships of ``locatedObject``. So a
/// context finds the model of an object that was related before its initializer had ended (S175).
public struct ModelAnchor: ~Copyable {
    /// The managed object of the model.
    public internal(set) var object: ManagedObject

    /// Creates the link to an object. Its deallocation clears the object's reference to the model.
    public init(_ object: ManagedObject) {
        self.object = object
        object.isBeingInitialized = false
        if object.unattachedAnchors < .max { object.unattachedAnchors += 1 }
    }

    deinit { object.modelWasReleased() }

    /// The managed object of the model, for setting relationships of a model that may be new.
    ///
    /// A context finds the model of a new object by the address of the anchor, which this property notes. Otherwise it creates another
    /// model of the object if the object is related in an initializer and read at the other end before it is used.
    ///
    /// - Precondition: The anchor is a stored property of a model, whose designated initializers are marked `@inline(never)`. Otherwise the
    ///   optimizer may allocate the model on the stack, and a context that retains it would corrupt memory. `@Model` marks them.
    public var locatedObject: ManagedObject {
        mutating get {
            noteAddress()
            return object
        }
    }

    /// The address is valid as long as the anchor, because a model's stored properties do not move.
    private mutating func noteAddress() {
        guard let state = object.detachedState else { return }
        withUnsafeMutablePointer(to: &self) { state.anchorAddress = UnsafeRawPointer($0) }
    }
}

extension ModelAnchor {
    /// Returns the offset of the anchor in instances of a model type, or nil if the type has no such property.
    static func offset(in type: any PersistentModel.Type) -> Int? { offsets(in: type).first }

    /// Returns the offsets of all anchors in instances of a model type: that of the class at the head of the hierarchy first.
    static func offsets(in type: Any.Type) -> [Int] {
        var (found, ofMacro): ([Int], [Int]) = ([], [])
        let ofClasses = _EachFieldOptions(rawValue: 1)
        _ = _forEachField(of: type, options: ofClasses) { name, offset, _, _ in
            let name = String(cString: name)
            if name == "__$modelAnchor" { ofMacro.append(offset) }
            if name.hasSuffix("modelAnchor") { found.append(offset) }
            return true
        }
        // Beside the anchor of the macro, a property of the same ending is one of the program's own.
        return ofMacro.isEmpty ? found : ofMacro
    }

    /// Returns the model whose anchor has an address.
    ///
    /// - Precondition: The anchor exists, and it is a property of an instance of `type`.
    static func model<M: PersistentModel>(_ type: M.Type, withAnchorAt address: UnsafeRawPointer, offset: Int) -> M {
        Unmanaged<M>.fromOpaque(address - offset).takeUnretainedValue()
    }

    /// Returns whether a model whose anchor is being released was never completed, because its initializer has thrown an error or returned
    /// nil.
    ///
    /// Swift then releases the properties that were set, without deallocating the model like one that was completed. A weak reference
    /// tells them apart, because one to a model that is being deallocated is nil.
    ///
    /// - Precondition: As for ``model(_:withAnchorAt:offset:)``.
    static func isIncomplete<M: PersistentModel>(_ type: M.Type, withAnchorAt address: UnsafeRawPointer, offset: Int) -> Bool {
        weak var instance: M?
        instance = model(type, withAnchorAt: address, offset: offset)
        return instance != nil
    }
}

extension ManagedObject {
    /// Whether a model of the object exists.
    var hasModel: Bool { model != nil || unattachedAnchors > 0 }

    /// Sets the model of the object, unless it has one.
    @inline(__always)
    func claim(_ model: any PersistentModel) {
        guard self.model == nil else { return }
        self.model = model
        if unattachedAnchors > 0 { unattachedAnchors -= 1 }
    }

    /// Called when a model is released.
    ///
    /// A model that the context retains is not the released one. Otherwise it may be, so the reference is cleared.
    @inline(__always)
    func modelWasReleased() {
        if retainsModel, unattachedAnchors == 0 { return initializerHasFailed() }
        if unattachedAnchors == 0 || model != nil && !retainsModel { model = nil } else { unattachedAnchors -= 1 }
        if state == .detached, let detachedState {
            // The noted address is that of the released anchor only if the object has no other model.
            if !hasModel { detachedState.arrival?.withdrawIncomplete(self, detachedState) }
            detachedState.modelWasReleased()
        }
    }

    /// Removes the object from its context. The context retains the model, so it can only be one whose initializer has failed after the
    /// object was inserted.
    @inline(never)
    private func initializerHasFailed() {
        guard state == .registered else { return model = nil }
        requiredContext.withdrawInserted(self)
    }
}
