import Synchronization

/// Stops work that may begin before or after the switch is pressed.
final class StopSwitch: Sendable {
    private let state = Mutex<(isPressed: Bool, stop: (@Sendable () -> Void)?)>((false, nil))

    func press() {
        state.withLock { state in
            state.isPressed = true
            state.stop?()
        }
    }

    func onPress(_ stop: @escaping @Sendable () -> Void) {
        state.withLock { state in
            state.stop = stop
            if state.isPressed { stop() }
        }
    }
}
